"""The logit lens: what each layer would predict if the model ended there.

Source: nostalgebraist, "interpreting GPT: the logit lens" (2020).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gpt.analysis import check_layer, check_position, check_token, log_probabilities, only_text, widened
from gpt.errors import GPTError
from gpt.model import GPT
from gpt.trace import Trace

Stage = Literal["resid_mid", "resid_post"]  # after a layer's attention, after its feed-forward part
STAGES: tuple[Stage, ...] = ("resid_mid", "resid_post")


@dataclass(frozen=True)
class Lens:
    """What every layer predicts at N positions; each tensor is (n_layer, 2, N), the 2 in the order of STAGES.

    token: the most likely next token. probability: its probability. entropy: of the whole prediction, in bits.
    chosen_probability, chosen_rank (1 = best): of the tokens that were asked for, None where none were.
    """

    token: Tensor
    probability: Tensor
    entropy: Tensor
    chosen_probability: Tensor | None
    chosen_rank: Tensor | None


@dataclass(frozen=True)
class TopTokens:
    """The k most likely tokens, best first: token ids and probabilities, each (k,)."""

    token: Tensor
    probability: Tensor


@torch.inference_mode()
def logit_lens(
    model: GPT,
    trace: Trace,
    *,
    positions: Sequence[int] | None = None,
    chosen: int | Sequence[int] | None = None,
) -> Lens:
    """Send the residual stream after each half layer through the last norm and the head; the last row is the model's.

    positions: where to look; None is everywhere. chosen: an id, or one for each of the positions, such as the
    token that really follows. The head runs 2 x n_layer x N times: with GPT-2's 50,257 tokens that is the cost.
    Raises ValueError for a position or an id that does not exist.
    """
    T, device = trace.final_norm.shape[1], trace.final_norm.device
    places = list(range(T) if positions is None else positions)
    for position in places:
        check_position(trace, position)
    wanted = _wanted(model, chosen, len(places))
    weight = widened(model.lm_head.weight)
    rows: list[list[Tensor]] = []
    for layer in trace.layers:
        states = torch.cat([only_text(getattr(layer, stage))[places] for stage in STAGES])  # (2 N, C)
        ids = None if wanted is None else torch.tensor(wanted * 2, device=device)
        rows.append([values.view(2, -1) for values in _read(model, weight, states, ids)])
    columns = [torch.stack(values) for values in zip(*rows, strict=True)]  # each (n_layer, 2, N)
    return Lens(*columns) if wanted is not None else Lens(*columns, None, None)


@torch.inference_mode()
def lens_cell(model: GPT, trace: Trace, layer: int, stage: Stage, position: int, k: int = 10) -> TopTokens:
    """The k most likely tokens at one place of the lens; fewer where the vocabulary is smaller."""
    check_layer(trace, layer)
    check_position(trace, position)
    if stage not in STAGES:
        raise GPTError("argument.choice", name="stage", choices=", ".join(STAGES), value=stage)
    state = only_text(getattr(trace.layers[layer], stage))[position]
    ((_, log_p),) = log_probabilities(model, model.ln_f.formula(state)[None])  # (1, vocab_size)
    best = log_p[0].exp().topk(min(k, model.config.vocab_size))
    return TopTokens(best.indices, best.values)


def _wanted(model: GPT, chosen: int | Sequence[int] | None, n: int) -> list[int] | None:
    """One id for each of n positions, each of them checked."""
    if chosen is None:
        return None
    ids = [chosen] * n if isinstance(chosen, int) else list(chosen)
    if len(ids) != n:
        raise GPTError("analysis.chosen_tokens", n=n, given=len(ids))
    for token in set(ids):
        check_token(model, token)
    return ids


def _read(model: GPT, weight: Tensor, states: Tensor, chosen: Tensor | None) -> list[Tensor]:
    """token, probability, entropy; of chosen ids also probability and rank; each (N,), for states (N, C).

    weight: the head's.
    """
    parts = []
    for rows, log_p in log_probabilities(model, model.ln_f.formula(states), weight):
        p = log_p.exp()
        probability, token = p.max(dim=-1)
        found = [token, probability, -(p * log_p).sum(dim=-1) / math.log(2)]
        if chosen is not None:
            own = log_p.gather(1, chosen[rows, None])  # (n, 1)
            found += [own[:, 0].exp(), 1 + (log_p > own).sum(dim=-1)]
        parts.append(found)
    return [torch.cat(values) for values in zip(*parts, strict=True)]
