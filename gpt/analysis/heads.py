"""What the heads look at: views of the attention weights, and the part that each head plays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gpt.analysis import check_layer, only_text, widened
from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.model import GPT
from gpt.trace import Trace


@torch.inference_mode()
def mean_weights(trace: Trace, layer: int | None = None) -> Tensor:
    """(T, S): attention weights averaged over the heads of one layer, or of all layers for None; rows sum to 1."""
    if layer is not None:
        check_layer(trace, layer)
    layers = trace.layers if layer is None else [trace.layers[layer]]
    return sum(only_text(each.attn_weights).mean(dim=0) for each in layers) / len(layers)


@torch.inference_mode()
def value_weighted(model: GPT, trace: Trace, layer: int) -> Tensor:
    """(nh, T, S): the length of what each token sends to each other, |w_ts v_s W_h|, in units of the stream.

    W_h is the head's slice of c_proj: a large weight on a value of almost no length moves nothing. `rows_to_one`
    makes shares of it. Kobayashi et al., "Attention is Not Only a Weight" (2020), arXiv 2004.10102.
    """
    check_layer(trace, layer)
    weights, v = only_text(trace.layers[layer].attn_weights), only_text(trace.layers[layer].attn_v)
    w = widened(model.h[layer].attn.c_proj.weight).T.unflatten(0, (model.config.n_head, -1))  # (nh, hs, C)
    return weights * (v @ w).norm(dim=-1)[:, None]  # (nh, T, S) x (nh, 1, S)


def without_first(weights: Tensor) -> Tensor:
    """(..., T, S) weights without the first token, where heads with nothing to do rest; rows sum to 1 again.

    The row of the first token itself has nothing left and becomes 0, as does any that looked nowhere else.
    Xiao et al., "Efficient Streaming Language Models with Attention Sinks" (2023), arXiv 2309.17453.
    """
    rest = weights.clone()
    rest[..., 0] = 0
    return rows_to_one(rest)


def rows_to_one(weights: Tensor) -> Tensor:
    """(..., T, S), each row divided by its sum; a row of zeros stays one."""
    total = weights.sum(dim=-1, keepdim=True)
    return weights / total.where(total > 0, 1)


@torch.inference_mode()
def rollout(trace: Trace, layer: int | None = None) -> Tensor:
    """(T, T): how much of each input token is in each position after a layer, the last for None; rows sum to 1.

    The product of (W + I) / 2 from the first layer up, W the mean of a layer's heads and I the shortcut around it.
    Abnar and Zuidema, "Quantifying Attention Flow in Transformers" (2020), arXiv 2005.00928.
    Raises ValueError for the trace of a pass that had earlier tokens in a cache.
    """
    last = len(trace.layers) - 1 if layer is None else layer
    check_layer(trace, last)
    T, S = trace.layers[0].attn_weights.shape[-2:]
    if T != S:
        raise GPTError("analysis.rollout_trace", traced=T, total=S)
    flow = shortcut = torch.eye(T, device=trace.final_norm.device)
    for index in range(last + 1):
        weights = mean_weights(trace, index)
        flow = (weights + shortcut) / 2 @ flow.to(weights)
    return flow


@dataclass(frozen=True)
class HeadRoles:
    """Scores of every head, each (n_layer, n_head), 0 to 1: the weight that goes where the role says, on average.

    previous_token: weight on the token just before; mean over all positions but the first.
    first_token: weight on the first token of the text; mean over all positions but the first.
    same_token: weight on earlier tokens with the same id ("duplicate token heads"; Wang et al. 2022, arXiv
        2211.00593); mean over the positions whose token occurred before.
    induction: weight on the tokens right after an earlier token with the same id, the present token left out
        (Olsson et al. 2022, arXiv 2209.11895); mean over the positions that have one.

    A score is NaN where the text has no position to measure it at.
    """

    previous_token: Tensor
    first_token: Tensor
    same_token: Tensor
    induction: Tensor


@torch.inference_mode()
def head_roles(trace: Trace, ids: Sequence[int]) -> HeadRoles:
    """Measure the roles of all heads on one text. Raises ValueError where ids are not the ids of the trace."""
    T, S = trace.layers[0].attn_weights.shape[-2:]
    if not T == S == len(ids):
        raise GPTError("analysis.ids_trace", n=len(ids), traced=T, total=S)
    device = trace.layers[0].attn_weights.device
    text, place = torch.tensor(list(ids), device=device), torch.arange(T, device=device)
    earlier = place < place[:, None]  # (T, T), [query, key]
    same = (text == text[:, None]) & earlier
    after = same.roll(1, dims=1) & earlier  # no earlier token is the last: what wraps around is False
    roles = {
        "previous_token": place == place[:, None] - 1,
        "first_token": earlier & (place == 0),
        "same_token": same,
        "induction": after,
    }
    scores: dict[str, list[Tensor]] = {name: [] for name in roles}
    for layer in trace.layers:
        weights = only_text(layer.attn_weights)  # (nh, T, T)
        for name, there in roles.items():
            on_target = (weights * there).sum(dim=-1)  # (nh, T)
            scores[name].append(on_target[:, there.any(dim=-1)].mean(dim=-1))
    return HeadRoles(**{name: torch.stack(rows) for name, rows in scores.items()})


def repeated_random_ids(
    config: GPTConfig, generator: torch.Generator, *, length: int = 50, start: int | None = None
) -> list[int]:
    """Random different ids, then the same again: nothing but the repetition tells what comes next.

    length: of one half, less where the context or the vocabulary is too small. start: an id to put in front once,
    such as end-of-text, which the model is used to seeing first. `head_roles(...).induction` on a trace of this text
    is the prefix-matching score of Olsson et al. (2022), arXiv 2209.11895, with two copies.
    """
    front = [] if start is None else [start]
    length = min(length, (config.block_size - len(front)) // 2, config.vocab_size - len(front))
    half = torch.randperm(config.vocab_size, generator=generator).tolist()
    half = [token for token in half if token != start][:length]
    return [*front, *half, *half]
