"""Activations over many texts: where a neuron is strongest, means, and directions between two sets of texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from gpt.analysis.concepts import Dictionary
from gpt.analysis.tracing import to_float32, trace_text
from gpt.edits import Hook, Steering
from gpt.errors import check_head, check_integer, check_layer
from gpt.inputs import AnyModel, Texts, gpt_of, ids_of

TEXTS_AT_ONCE = 256  # traces held at the same time


@dataclass(frozen=True)
class CorpusExample:
    """A token on which an activation is strong.

    text: number of the text. position: that of the token in the text. ids: the text. value: the activation.
    """

    text: int
    position: int
    ids: tuple[int, ...]
    value: float


def activations(model: AnyModel, name: str, texts: Texts, dictionary: Dictionary | None = None) -> Iterator[Tensor]:
    """Yield one activation for each text, without the batch dimension, in float32: (T, width), or (nh, T, hs).

    name: such as "layers.3.mlp_post" or "final_norm"; see `Trace`. Only the layers up to this one are computed.
    dictionary: yield the activity of its n features instead, (T, n), which is 0 on the first token of a text.
    """
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        for trace in trace_text(model, texts[start : start + TEXTS_AT_ONCE], only=[name]):
            values = to_float32(trace[name][0])
            if dictionary is not None:
                values = dictionary.activity(values.to(dictionary.encoder))
                values[0] = 0  # the stream of the first token differs from all others
            yield values


@dataclass(frozen=True, eq=False)
class Peaks:
    """Where each of n numbers is largest, at most once in each text, in descending order.

    values, texts, positions: (n, k), the value, the number of the text, and the position in it.
    """

    values: Tensor
    texts: Tensor
    positions: Tensor

    @classmethod
    def of(cls, activations: Iterable[Tensor], k: int) -> Peaks:
        """Find up to k peaks in the activations of each text, (T, n)."""
        highest = [values.max(dim=0) for values in activations]
        values, texts = torch.stack([each.values for each in highest]).topk(min(k, len(highest)), dim=0)
        positions = torch.stack([each.indices for each in highest]).gather(0, texts)
        return cls(values.T, texts.T, positions.T)

    def examples(self, index: int, rows: Sequence[Sequence[int]]) -> list[CorpusExample]:
        """Return one number's peaks as examples. rows: the ids of each text."""
        found = zip(*(each[index].tolist() for each in (self.texts, self.positions, self.values)), strict=True)
        return [CorpusExample(text, position, tuple(rows[text]), value) for text, position, value in found]


@torch.inference_mode()
def strongest_examples(
    model: AnyModel, name: str, index: int, texts: Texts, k: int = 5, dictionary: Dictionary | None = None
) -> list[CorpusExample]:
    """Return the k tokens on which one number of an activation is largest, in descending order, one for each text.

    name: an activation of shape (B, T, width), such as "layers.3.mlp_post". index: the neuron, or the dimension.
    dictionary: of the stream of this name, such as `loaded.concepts.dictionaries[5]` for "layers.5.resid_post"; index
    is then a feature. Raises ValueError for an unknown name or index.
    """
    rows = [ids_of(model, text) for text in texts]

    def of_index(values: Tensor) -> Tensor:
        check_integer("index", index, 0, values.shape[-1] - 1)
        return values[:, index, None]

    if not rows:
        return []
    return Peaks.of(map(of_index, activations(model, name, rows, dictionary)), k).examples(0, rows)


@torch.inference_mode()
def mean_activation(model: AnyModel, name: str, texts: Texts) -> Tensor:
    """Return the mean of an activation over all tokens of all texts: (width,), or (nh, hs) for heads."""
    sums = [(values.sum(dim=-2), values.shape[-2]) for values in activations(model, name, texts)]
    return torch.stack([total for total, _ in sums]).sum(dim=0) / sum(n_tokens for _, n_tokens in sums)


def mean_difference(model: AnyModel, layer: int, texts: Texts, others: Texts) -> Steering:
    """Return the mean of the stream after a layer over some texts, minus that over other texts, as an edit.

    Multiply `value` to steer more strongly: `replace(steering, value=2 * steering.value)`.
    Turner et al., "Steering Language Models with Activation Engineering" (2023), arXiv 2308.10248.
    """
    check_layer(layer, gpt_of(model).config.n_layer)
    name = f"layers.{layer}.resid_post"
    return Steering(layer, mean_activation(model, name, texts) - mean_activation(model, name, others))


def mean_ablation(model: AnyModel, heads: Sequence[tuple[int, int]], texts: Texts) -> tuple[Hook, ...]:
    """Return hooks that give heads, (layer, head), their mean output over all tokens of some texts.

    Unlike a factor of 0, this removes what a head says about this text, but keeps what it always says. Use them with
    `Edits(hooks=...)`. Wang et al., "Interpretability in the Wild" (2022), arXiv 2211.00593.
    """
    config = gpt_of(model).config
    for layer, head in heads:
        check_layer(layer, config.n_layer)
        check_head(head, config.n_head)
    hooks = []
    for layer in dict.fromkeys(layer for layer, _ in heads):
        mean = mean_activation(model, f"layers.{layer}.head_out", texts)[:, None]  # (nh, 1, hs)
        chosen = torch.tensor([(layer, head) in heads for head in range(config.n_head)], device=mean.device)
        hooks.append(Hook("head_out", layer, partial(mean.where, chosen[:, None, None])))
    return tuple(hooks)
