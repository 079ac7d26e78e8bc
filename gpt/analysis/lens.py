"""The logit lens: what each layer would predict if the model ended there.

Source: nostalgebraist, "interpreting GPT: the logit lens" (2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gpt.analysis.predictions import float32_logits, log_probabilities
from gpt.analysis.tracing import for_texts, single_sequence, to_float32, traced_position
from gpt.errors import check_choice, check_layer, check_token_id, require
from gpt.model import GPT
from gpt.sampling import entropy_bits, keep_only, rank_of
from gpt.trace import Trace

LensPoint = Literal["resid_mid", "resid_post"]  # after a layer's attention, after its feed-forward network
LENS_POINTS: tuple[LensPoint, ...] = ("resid_mid", "resid_post")


@dataclass(frozen=True)
class Lens:
    """Predictions from every layer at N positions.

    Each tensor has shape (n_layer, 2, N). The second dimension holds the prediction after attention and the one after
    the feed-forward network. token, probability: the most likely next token and its probability. entropy: entropy of
    the distribution, in bits. chosen_probability, chosen_rank: probability and rank (1 for the most likely) of the
    `chosen` tokens; None if none were given.
    """

    token: Tensor
    probability: Tensor
    entropy: Tensor
    chosen_probability: Tensor | None
    chosen_rank: Tensor | None


@for_texts
def logit_lens(
    model: GPT,
    trace: Trace,
    *,
    positions: Sequence[int] | None = None,
    chosen: int | Sequence[int] | None = None,
    only: Sequence[int] = (),
) -> Lens:
    """Apply the final norm and the output head to the residual stream at LENS_POINTS of each layer.

    trace: A trace, a text to trace, or a list of either, which gives a list of results.
    positions: Defaults to all; negative positions count from the end.
    chosen: One id, or one per position, such as the actual next tokens.
    only: Tokens to which the predictions are restricted; defaults to all.

    Applies the head to 2 x n_layer x N states. Raises ValueError if a position or id is out of range.
    """
    positions = range(trace.final_norm.shape[1]) if positions is None else positions
    positions = [traced_position(trace, position) for position in positions]
    if isinstance(chosen, int):
        chosen = [chosen] * len(positions)
    if chosen is not None:
        require(len(chosen) == len(positions), "analysis.chosen_tokens", n=len(positions), given=len(chosen))
    for token in set(chosen or ()):
        check_token_id(token, model.config.vocab_size)
    streams = [single_sequence(getattr(layer, point))[positions] for layer in trace.layers for point in LENS_POINTS]
    ids = None if chosen is None else torch.tensor([*chosen] * len(streams), device=streams[0].device)[:, None]
    chunks = []
    for rows, log_p in log_probabilities(model, model.ln_f.formula(torch.cat(streams))):
        if only:
            log_p = keep_only(log_p, only).log_softmax(dim=-1)
        p = log_p.exp()
        probability, best = p.max(dim=-1)
        values = [best, probability, entropy_bits(p)]
        if ids is not None:
            values += [p.gather(1, ids[rows])[:, 0], rank_of(log_p, ids[rows])]
        chunks.append(values)
    columns = [torch.cat(values).view(len(trace.layers), 2, -1) for values in zip(*chunks, strict=True)]
    return Lens(*columns[:3], *(columns[3:] or (None, None)))


@for_texts
def lens_top_tokens(
    model: GPT, trace: Trace, layer: int, point: LensPoint, position: int = -1, k: int = 10, *, only: Sequence[int] = ()
) -> tuple[Tensor, Tensor]:
    """Return the ids and probabilities of the k most likely tokens at one layer and position, most likely first."""
    logits = keep_only(lens_logits(model, trace, layer, point, position), only)
    top = logits.log_softmax(dim=-1).exp().topk(min(k, len(logits)))
    return top.indices, top.values


@for_texts
def lens_logits(model: GPT, trace: Trace, layer: int, point: LensPoint, position: int = -1) -> Tensor:
    """Return the next-token logits at one layer and position, (vocab_size,)."""
    check_layer(layer, len(trace.layers))
    position = traced_position(trace, position)
    check_choice("point", point, LENS_POINTS)
    state = single_sequence(getattr(trace.layers[layer], point))[position]
    return float32_logits(model, model.ln_f.formula(state)[None], to_float32(model.lm_head.weight))[0]
