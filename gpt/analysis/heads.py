"""Attention rollout, the roles of heads in a text, and the heads that copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from gpt.analysis.tracing import of_each, single_sequence, trace_text
from gpt.config import GPTConfig
from gpt.errors import check_layer, require
from gpt.inputs import AnyModel, Text, Texts, gpt_of
from gpt.trace import LayerTrace, Trace

N_SEQUENCES = 8


@torch.inference_mode()
def rollout(trace: Trace, layer: int | None = None) -> Tensor:
    """Return the share of each input token at each position after one layer, by default the last one: (T, T).

    This is the product of (W + I) / 2 over the layers so far, where W is the mean over a layer's heads and I stands for
    the residual connection. Rows sum to 1. Raises ValueError if the traced pass had earlier tokens in a cache.
    Source: Abnar and Zuidema, "Quantifying Attention Flow in Transformers" (2020), arXiv 2005.00928.
    """
    last = len(trace.layers) - 1 if layer is None else layer
    check_layer(last, len(trace.layers))
    T, S = trace.layers[0].attn_weights.shape[-2:]
    require(T == S, "analysis.ids_trace", n=S, traced=T, total=S)
    flow = torch.eye(T)
    for each in trace.layers[: last + 1]:
        weights = single_sequence(each.attn_weights).mean(dim=0)
        flow = weights @ flow.to(weights) + flow.to(weights)
        flow = flow / flow.sum(dim=-1, keepdim=True)  # of 2, unless hooks have changed the weights
    return flow


@dataclass(frozen=True)
class HeadRoles:
    """Scores of all heads, (n_layer, n_head), between 0 and 1: mean attention to the positions that define a role.

    A score is NaN if no position in the text qualifies. previous_token, first_token: weight on the previous token and
    on the first token in the text, averaged over all positions except the first. same_token: weight on earlier
    tokens with the same id ("duplicate token heads"; Wang et al. 2022, arXiv 2211.00593), averaged over the positions
    whose token has occurred before. induction: weight on tokens right after an earlier token with the same id, other
    than the current token (Olsson et al. 2022, arXiv 2209.11895), averaged over the positions that have such a token.
    """

    previous_token: Tensor
    first_token: Tensor
    same_token: Tensor
    induction: Tensor


@overload
def head_roles(trace: Trace | AnyModel, ids: Text) -> HeadRoles: ...
@overload
def head_roles(trace: AnyModel, ids: Texts) -> list[HeadRoles]: ...
@torch.inference_mode()
def head_roles(trace: Trace | AnyModel, ids: Text | Texts) -> HeadRoles | list[HeadRoles]:
    """Score all heads on one text, given a trace of it or a model, or on each of several texts, given a model.

    Raises ValueError if the trace does not cover exactly these ids.
    """
    if isinstance(trace, Trace):
        return _roles(trace, ids)  # type: ignore[arg-type]
    return of_each(trace, ids, _roles, only=["attn_weights"])


def _roles(trace: Trace, ids: Sequence[int]) -> HeadRoles:
    T, S = trace.layers[0].attn_weights.shape[-2:]
    require(T == S == len(ids), "analysis.ids_trace", n=len(ids), traced=T, total=S)
    device = trace.layers[0].attn_weights.device
    text, positions = torch.tensor(list(ids), device=device), torch.arange(T, device=device)
    earlier = positions < positions[:, None]  # (T, T), [query, key]
    same = (text == text[:, None]) & earlier
    targets = {
        "previous_token": positions == positions[:, None] - 1,
        "first_token": earlier & (positions == 0),
        "same_token": same,
        "induction": same.roll(1, dims=1) & earlier,  # the last column of `same` is False, so nothing wraps around
    }

    def score(layer: LayerTrace, target: Tensor) -> Tensor:
        on_target = (single_sequence(layer.attn_weights) * target).sum(dim=-1)  # (nh, T)
        return on_target[:, target.any(dim=-1)].mean(dim=-1)

    rows = {name: [score(layer, target) for layer in trace.layers] for name, target in targets.items()}
    return HeadRoles(**{name: torch.stack(scores) for name, scores in rows.items()})


def repeated_random_ids(
    config: GPTConfig, generator: torch.Generator, *, length: int = 50, start: int | None = None
) -> list[int]:
    """Return two copies of a sequence of distinct random ids. Only the repetition makes the next token predictable.

    length: tokens per copy; reduced if the context or the vocabulary is too small. start: an id to prepend, such as
    end-of-text. `head_roles(...).induction` on this text is the prefix-matching score of Olsson et al. (2022).
    """
    front = [] if start is None else [start]
    length = min(length, (config.block_size - len(front)) // 2, config.vocab_size - len(front))
    half = torch.randperm(config.vocab_size, generator=generator, device=generator.device).tolist()
    half = [token for token in half if token != start][:length]
    return [*front, *half, *half]


@dataclass(frozen=True)
class CopyCircuit:
    """The two heads, each (layer, head), that copy the token at `source` to the end of the text.

    source: the position after the most recent earlier occurrence of the last token. induction: the head that attends
    most from the last position to `source`. previous_token: see `CopyingHeads`.
    """

    source: int
    induction: tuple[int, int]
    previous_token: tuple[int, int]


@torch.inference_mode()
def copy_circuit(trace: Trace, ids: Sequence[int]) -> CopyCircuit:
    """Find the two heads that copy what followed an earlier occurrence of a text's last token.

    Raises ValueError if the last token has not occurred before.
    Source: Olsson et al., "In-context Learning and Induction Heads" (2022), arXiv 2209.11895.
    """
    last = len(ids) - 1
    source = 1 + max((i for i in range(last) if ids[i] == ids[last]), default=-1)
    require(source, "analysis.no_repeat")
    roles = head_roles(trace, ids).previous_token  # (n_layer, n_head)
    weights = torch.stack([layer.attn_weights[0, :, last, source] for layer in trace.layers])  # (n_layer, n_head)
    return CopyCircuit(source, *_best_pair(weights, roles))


@dataclass(frozen=True)
class HeadScore:
    """A head and its score: mean attention weight, between 0 and 1, on the positions that define its role."""

    layer: int
    head: int
    score: float


@dataclass(frozen=True)
class CopyingHeads:
    """The heads that copy best.

    induction: the head with the highest prefix-matching score. previous_token: the best previous-token head in an
    earlier layer, if any, else in layer 0. loss: mean loss on the second copy, starting with its second token, in nats.
    """

    induction: HeadScore
    previous_token: HeadScore
    loss: float


class CopyingScores(NamedTuple):
    """Scores of all heads, each (n_layer, n_head). loss: see `CopyingHeads`."""

    induction: Tensor
    previous_token: Tensor
    loss: float


@torch.inference_mode()
def copying_scores(model: AnyModel, start: int | None = None, length: int = 50, *, seed: int = 0) -> CopyingScores:
    """Score all heads on N_SEQUENCES repeated sequences of `length` random tokens.

    start: an id to prepend, such as end-of-text. The scores are from Olsson et al. (2022), arXiv 2209.11895.
    """
    config, generator = gpt_of(model).config, torch.Generator().manual_seed(seed)
    texts = [repeated_random_ids(config, generator, length=length, start=start) for _ in range(N_SEQUENCES)]
    roles, losses = [], []
    for ids, trace in zip(texts, trace_text(model, texts, only=["attn_weights", "logits"]), strict=True):
        second = torch.tensor(ids[-(len(ids) // 2) :], device=trace.logits.device)  # the second copy
        roles.append(head_roles(trace, ids))
        losses.append(cross_entropy(trace.logits[0, -len(second) : -1].float(), second[1:]).item())
    names = ("induction", "previous_token")
    induction, previous = (torch.stack([getattr(each, name) for each in roles]).mean(dim=0) for name in names)
    return CopyingScores(induction, previous, sum(losses) / len(losses))


def copying_heads(model: AnyModel, start: int | None = None, length: int = 50, *, seed: int = 0) -> CopyingHeads:
    """Find the heads that copy best according to `copying_scores`."""
    *tables, loss = copying_scores(model, start, length, seed=seed)
    best, previous = (HeadScore(*head, float(x[head])) for head, x in zip(_best_pair(*tables), tables, strict=True))
    return CopyingHeads(best, previous, loss)


def _best_pair(induction: Tensor, previous_token: Tensor) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the best induction head and the best previous-token head in an earlier layer, if any, else in layer 0."""
    layer, head = divmod(int(induction.argmax()), induction.shape[1])
    return (layer, head), divmod(int(previous_token[: max(1, layer)].argmax()), induction.shape[1])
