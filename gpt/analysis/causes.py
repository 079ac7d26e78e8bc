"""What a prediction depends on: the tokens and the heads without which its probability falls, and what is predicted
without several of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from torch import Tensor

from gpt.analysis.attribution import added_by_heads, direct_logit_attribution
from gpt.analysis.predictions import log_probabilities
from gpt.analysis.saliency import leave_one_out, log_p_next, too_short
from gpt.analysis.tracing import single_sequence, to_float32, trace_window
from gpt.checks import check_position, check_token_id
from gpt.edits import Edits, Patch
from gpt.model import GPT

MIN_FALL = 0.001  # relative; a smaller one may be rounding
N_HEADS = 8  # heads that are switched off, those with the largest direct contributions


@dataclass(frozen=True)
class Cause:
    """place: the position of a token, or (layer, head). probability: of the predicted token without it."""

    place: int | tuple[int, int]
    probability: float


@dataclass(frozen=True)
class Causes:
    """probability: of the predicted token. tokens, heads: those without which it is lower, the lowest first."""

    probability: float
    tokens: tuple[Cause, ...]
    heads: tuple[Cause, ...]


@dataclass(frozen=True)
class Ablation:
    """What a prediction is made without.

    tokens: positions that are left out. heads: (layer, head) whose output is 0. reads: (layer, head, position): the
    weighted value that the head takes from that position is missing in its output at the last position.
    """

    tokens: frozenset[int] = frozenset()
    heads: frozenset[tuple[int, int]] = frozenset()
    reads: frozenset[tuple[int, int, int]] = frozenset()


@torch.inference_mode()
def strongest_causes(
    model: GPT, ids: Sequence[int], token: int, positions: Sequence[int], edits: Edits | None = None
) -> Causes:
    """Leave out each token at `positions`, and each of N_HEADS heads, and read the text (T,) again.

    A token is left out as in `leave_one_out`; a head's output is set to 0. edits: of the original pass; its patches
    and hooks of positions, which belong to one text, are not applied. Raises ValueError for an id or a position that
    does not exist.
    """
    check_token_id(token, model.config.vocab_size)
    edits = (edits or Edits()).for_any_text()
    last = len(ids) - 1
    trace = trace_window(model, ids, last, last + 1, edits)
    weight = to_float32(model.lm_head.weight)
    probability = log_p_next(model, trace.final_norm, token, weight).exp().item()

    batches = leave_one_out(model, ids, token, positions, edits) if last else ()
    falls = [fall for batch in batches for fall in batch.tolist()]
    without = {place: probability * math.exp(-fall) for place, fall in zip(positions, falls, strict=False)}

    contributions = direct_logit_attribution(model, trace, 0, token, edits=edits).heads
    idx, without_head = torch.tensor([list(ids)], device=model.device), {}
    for index in contributions.flatten().topk(min(N_HEADS, contributions.numel())).indices.tolist():
        head = divmod(index, model.config.n_head)
        off = replace(edits, head_scale={**edits.head_scale, head: 0.0})
        states = model.hidden_states(idx, edits=off)
        without_head[head] = log_p_next(model, states, token, weight).exp().item()
    return Causes(probability, _lower(probability, without), _lower(probability, without_head))


def _lower(probability: float, without: dict[int, float] | dict[tuple[int, int], float]) -> tuple[Cause, ...]:
    """The places with a lower probability than with everything, the lowest first."""
    found = [Cause(place, p) for place, p in without.items() if p < (1 - MIN_FALL) * probability]
    return tuple(sorted(found, key=lambda cause: cause.probability))


@torch.inference_mode()
def predict_without(model: GPT, ids: Sequence[int], ablation: Ablation, edits: Edits | None = None) -> Tensor:
    """Log-probabilities of the token after a text without some of its tokens, of the heads and of what they read,
    (vocab_size,) nats.

    A token is left out as in `leave_one_out`. Reads are taken out from the lowest layer up, each from a pass that lacks
    those below. edits: as in `strongest_causes`. Raises ValueError for a position, layer or head that does not exist,
    and where no token is left.
    """
    for position in (*ablation.tokens, *(read[2] for read in ablation.reads)):
        check_position(position, len(ids))
    kept = [position for position in range(len(ids)) if position not in ablation.tokens]
    if not kept:
        raise too_short(0)
    rest, last = [ids[position] for position in kept], len(kept) - 1
    edits = (edits or Edits()).for_any_text()
    edits = replace(edits, head_scale={**edits.head_scale, **dict.fromkeys(ablation.heads, 0.0)})
    replace(edits, head_scale=dict.fromkeys((read[:2] for read in ablation.reads), 0.0)).check(model.config)
    reads = sorted((layer, head, kept.index(at)) for layer, head, at in ablation.reads if at in kept)
    for layer, of_layer in groupby(reads, key=lambda read: read[0]):
        traced = trace_window(model, rest, last, last + 1, edits).layers[layer]
        weights = single_sequence(traced.attn_weights)[:, 0]  # (nh, S)
        for _, head, position in of_layer:
            weights[head, position] = 0
        heads, bias = added_by_heads(model.blocks[layer], weights, single_sequence(traced.attn_v), edits)
        patch = Patch("attn_out", layer, last, edits.attn_scale.get(layer, 1.0) * (heads.sum(dim=0) + bias))
        edits = replace(edits, patches=(*edits.patches, patch))
    states = model.hidden_states(torch.tensor([rest], device=model.device), edits=edits)
    (log_p,) = (log_p for _, log_p in log_probabilities(model, states[:, -1]))
    return log_p[0]
