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
from gpt.analysis.tracing import for_texts, single_sequence, to_float32, traced, traced_position
from gpt.checks import check_choice, check_layer, check_token_id
from gpt.errors import GPTError
from gpt.inputs import AnyModel, Text, gpt_of
from gpt.model import GPT
from gpt.sampling import entropy_bits, keep_only, rank_of
from gpt.trace import Trace

LensPoint = Literal["resid_mid", "resid_post"]  # after a layer's attention, after its feed-forward network
LENS_POINTS: tuple[LensPoint, ...] = ("resid_mid", "resid_post")


@dataclass(frozen=True)
class Lens:
    """Predictions from every layer at N positions.

    Each tensor has shape (n_layer, 2, N). The second dimension holds the prediction after attention and the one after
    the feed-forward network.

    Attributes:
        token: The most likely next token.
        probability: Probability of that token.
        entropy: Entropy of the distribution, in bits.
        chosen_probability: Probability of the `chosen` tokens; None if none were given.
        chosen_rank: Rank of the `chosen` tokens, 1 for the most likely; None if none were given.
    """

    token: Tensor
    probability: Tensor
    entropy: Tensor
    chosen_probability: Tensor | None
    chosen_rank: Tensor | None


@dataclass(frozen=True)
class TopTokens:
    """Ids and probabilities of the k most likely tokens, in descending order, each (k,)."""

    token: Tensor
    probability: Tensor


@for_texts
@torch.inference_mode()
def logit_lens(
    model: AnyModel,
    trace: Trace | Text,
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
    model, trace = gpt_of(model), traced(model, trace)
    T, device = trace.final_norm.shape[1], trace.final_norm.device
    positions = [traced_position(trace, position) for position in (range(T) if positions is None else positions)]
    ids = None
    if chosen is not None:
        chosen = [chosen] * len(positions) if isinstance(chosen, int) else list(chosen)
        if len(chosen) != len(positions):
            raise GPTError("analysis.chosen_tokens", n=len(positions), given=len(chosen))
        for token in set(chosen):
            check_token_id(token, model.config.vocab_size)
        ids = torch.tensor(chosen * 2, device=device)
    weight = to_float32(model.lm_head.weight)
    layers: list[list[Tensor]] = []
    for layer in trace.layers:
        states = torch.cat([single_sequence(getattr(layer, point))[positions] for point in LENS_POINTS])  # (2 N, C)
        layers.append([values.view(2, -1) for values in _predictions(model, weight, states, ids, only)])
    columns = [torch.stack(values) for values in zip(*layers, strict=True)]  # each (n_layer, 2, N)
    best, probability, entropy, *of_chosen = columns
    chosen_probability, chosen_rank = of_chosen or (None, None)
    return Lens(best, probability, entropy, chosen_probability, chosen_rank)


@torch.inference_mode()
def lens_top_tokens(
    model: AnyModel,
    trace: Trace | Text,
    layer: int,
    point: LensPoint,
    position: int = -1,
    k: int = 10,
    *,
    only: Sequence[int] = (),
) -> TopTokens:
    """Return the k most likely tokens at one layer and position; fewer if the vocabulary is smaller."""
    logits = keep_only(lens_logits(model, trace, layer, point, position), only)
    top = logits.log_softmax(dim=-1).exp().topk(min(k, len(logits)))
    return TopTokens(top.indices, top.values)


@torch.inference_mode()
def lens_logits(model: AnyModel, trace: Trace | Text, layer: int, point: LensPoint, position: int = -1) -> Tensor:
    """Return the next-token logits at one layer and position, (vocab_size,)."""
    model, trace = gpt_of(model), traced(model, trace)
    check_layer(layer, len(trace.layers))
    position = traced_position(trace, position)
    check_choice("point", point, LENS_POINTS)
    state = single_sequence(getattr(trace.layers[layer], point))[position]
    return float32_logits(model, model.ln_f.formula(state)[None], to_float32(model.lm_head.weight))[0]


def _predictions(
    model: GPT, weight: Tensor, states: Tensor, chosen: Tensor | None, only: Sequence[int]
) -> list[Tensor]:
    """Return the columns of `Lens` for states (N, C), each (N,), without the last two if no ids are chosen."""
    chunks = []
    for rows, all_log_p in log_probabilities(model, model.ln_f.formula(states), weight):
        log_p = keep_only(all_log_p, only).log_softmax(dim=-1) if only else all_log_p
        p = log_p.exp()
        probability, token = p.max(dim=-1)
        values = [token, probability, entropy_bits(p)]
        if chosen is not None:
            ids = chosen[rows, None]  # (n, 1)
            values += [log_p.gather(1, ids)[:, 0].exp(), rank_of(log_p, ids)]
        chunks.append(values)
    return [torch.cat(values) for values in zip(*chunks, strict=True)]
