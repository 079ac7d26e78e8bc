"""What a prediction depends on most: the token and the head without which its probability falls furthest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.saliency import leave_one_out, log_p_next
from gpt.analysis.tracing import to_float32, trace_window
from gpt.checks import check_token_id
from gpt.edits import Edits
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
    """probability: of the predicted token. token, head: None where its probability falls without none of them."""

    probability: float
    token: Cause | None
    head: Cause | None


@torch.inference_mode()
def strongest_causes(
    model: GPT, ids: Sequence[int], token: int, positions: Sequence[int], edits: Edits | None = None
) -> Causes:
    """Leave out each token at `positions`, and each of N_HEADS heads, and read the text (T,) again.

    A token is left out as in `leave_one_out`; a head's output is set to 0. edits: of the original pass; its patches,
    which belong to positions, are not applied. Raises ValueError for an id or a position that does not exist.
    """
    check_token_id(token, model.config.vocab_size)
    edits = replace(edits or Edits(), patches=())
    last = len(ids) - 1
    trace = trace_window(model, ids, last, last + 1, edits)
    weight = to_float32(model.lm_head.weight)
    probability = log_p_next(model, trace.final_norm, token, weight).exp().item()

    falls = torch.cat([torch.zeros(0), *leave_one_out(model, ids, token, positions, edits)]) if last else torch.zeros(0)
    without = {place: probability * (-fall).exp().item() for place, fall in zip(positions, falls.cpu(), strict=False)}

    contributions = direct_logit_attribution(model, trace, 0, token, edits=edits).heads
    idx, without_head = torch.tensor([list(ids)], device=model.device), {}
    for index in contributions.flatten().topk(min(N_HEADS, contributions.numel())).indices.tolist():
        head = divmod(index, model.config.n_head)
        off = replace(edits, head_scale={**edits.head_scale, head: 0.0})
        states = model.hidden_states(idx, edits=off)
        without_head[head] = log_p_next(model, states, token, weight).exp().item()
    return Causes(probability, _strongest(probability, without), _strongest(probability, without_head))


def _strongest(probability: float, without: dict[int, float] | dict[tuple[int, int], float]) -> Cause | None:
    """The place with the lowest probability, if that is lower than with everything."""
    place, lowest = min(without.items(), key=lambda item: item[1], default=(0, probability))
    return Cause(place, lowest) if lowest < (1 - MIN_FALL) * probability else None
