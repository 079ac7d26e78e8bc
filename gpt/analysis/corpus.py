"""Activations over many texts: where a neuron is strongest, means, and directions between two sets of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest

import torch
from torch import Tensor

from gpt.analysis.tracing import to_float32, trace_text
from gpt.checks import check_head, check_integer, check_layer
from gpt.edits import Hook, Steering
from gpt.errors import GPTError
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


@torch.inference_mode()
def activations(model: AnyModel, name: str, texts: Texts) -> list[Tensor]:
    """Return one activation for each text, without the batch dimension, in float32: (T, width), or (nh, T, hs).

    name: such as "layers.3.mlp_post" or "final_norm"; see `Trace`. Only the layers up to this one are computed.
    """
    found = []
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        traces = trace_text(model, texts[start : start + TEXTS_AT_ONCE], only=[name])
        found += [to_float32(trace[name][0]).clone() for trace in traces]
    return found


def strongest_examples(model: AnyModel, name: str, index: int, texts: Texts, k: int = 5) -> list[CorpusExample]:
    """Return the k tokens on which one number of an activation is largest, in descending order, one for each text.

    name: an activation of shape (B, T, width), such as "layers.3.mlp_post". index: the neuron, or the dimension.
    Raises ValueError for an unknown name or index.
    """
    rows = [ids_of(model, text) for text in texts]
    examples = []
    for number, values in enumerate(activations(model, name, rows)):
        check_integer("index", index, 0, values.shape[-1] - 1)
        value, position = values[:, index].max(dim=0)
        examples.append(CorpusExample(number, int(position), tuple(rows[number]), value.item()))
    return nlargest(k, examples, key=lambda example: example.value)


def mean_activation(model: AnyModel, name: str, texts: Texts) -> Tensor:
    """Return the mean of an activation over all tokens of all texts: (width,), or (nh, hs) for heads."""
    found = activations(model, name, texts)
    if not found:
        raise GPTError("analysis.no_texts")
    n_tokens = sum(values.shape[-2] for values in found)
    return torch.stack([values.sum(dim=-2) for values in found]).sum(dim=0) / n_tokens


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
    config, hooks = gpt_of(model).config, []
    for layer, head in heads:
        check_layer(layer, config.n_layer)
        check_head(head, config.n_head)
    for layer in dict.fromkeys(layer for layer, _ in heads):
        mean = mean_activation(model, f"layers.{layer}.head_out", texts)
        chosen = torch.tensor([head for each, head in heads if each == layer], device=mean.device)

        def averaged(x: Tensor, chosen: Tensor = chosen, mean: Tensor = mean) -> Tensor:
            x[:, chosen] = mean[chosen][:, None].to(x)  # (B, heads, T, hs)
            return x

        hooks.append(Hook("head_out", layer, averaged))
    return tuple(hooks)
