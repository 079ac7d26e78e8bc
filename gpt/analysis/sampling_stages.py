"""The effect of each sampling stage, and where the draw falls in the final distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gpt.sampling import SamplingParams, StageName, entropy_bits, inverse_cdf, stage_logits, stage_order, top_ids


@dataclass(frozen=True)
class SamplingStage:
    """The effect of one sampling stage. The "final" stage combines all the others.

    logits: values after the stage, float32 on the CPU, (vocab_size,); -inf for removed tokens.
    n_kept: number of tokens that can still be drawn. n_removed, removed_mass: number of tokens removed, and their total
    probability before the stage. entropy_before, entropy_after: in bits; perplexity is 2^entropy.
    """

    name: StageName
    logits: Tensor
    n_kept: int
    n_removed: int
    removed_mass: float
    entropy_before: float
    entropy_after: float


def sampling_stages(logits: Tensor, params: SamplingParams, *, previous_ids: Sequence[int] = ()) -> list[SamplingStage]:
    """Return the effects of the sampling stages on logits (vocab_size,), in order, ending with the "final" stage.

    Takes the same arguments as `distribution`.
    """
    rows = [torch.from_numpy(row) for row in stage_logits(logits, params, previous_ids)]
    pairs = [*pairwise(rows), (rows[0], rows[-1])]
    return [_stage(name, *pair) for name, pair in zip((*stage_order(params), "final"), pairs, strict=True)]


def _stage(name: StageName, before: Tensor, after: Tensor) -> SamplingStage:
    p, p_after = (logits.double().softmax(dim=0) for logits in (before, after))
    kept = after > -math.inf
    removed = ~kept & (before > -math.inf)
    mass, *entropies = p[removed].sum().item(), entropy_bits(p).item(), entropy_bits(p_after).item()
    return SamplingStage(name, after, int(kept.sum()), int(removed.sum()), mass, *entropies)


@dataclass(frozen=True)
class TokenAtStage:
    """A token after one stage, or before the first stage ("raw"). rank: 1 for the most likely token.

    A removed token has logit and log_probability (nats) -inf, probability 0 and rank None.
    """

    stage: StageName | Literal["raw"]
    logit: float
    probability: float
    log_probability: float
    rank: int | None


def token_at_stages(logits: Tensor, stages: Sequence[SamplingStage], token_id: int) -> list[TokenAtStage]:
    """Follow a token's logit, probability and rank through `stages`, the result of `sampling_stages`."""

    def at(name: StageName | Literal["raw"], values: Tensor) -> TokenAtStage:
        logit, nats = values[token_id].item(), values.double().log_softmax(dim=0)[token_id].item()
        rank = None if logit == -math.inf else 1 + int((values > logit).sum())
        return TokenAtStage(name, logit, math.exp(nats), nats, rank)

    return [at("raw", logits.detach().to("cpu", torch.float32)), *(at(each.name, each.logits) for each in stages)]


@dataclass(frozen=True)
class CumulativeDraw:
    """The cumulative distribution in descending order of probability, and where the draw falls in it.

    ids: (n,), tokens with nonzero probability, in the order of `inverse_cdf`. ends: (n,), float64, cumulative
    probability up to and including each token; the last is 1. index: index of the drawn token in ids.
    """

    ids: np.ndarray
    ends: np.ndarray
    index: int

    @property
    def bounds(self) -> tuple[float, float]:
        """Cumulative probability before and after the drawn token."""
        return float(self.ends[self.index - 1]) if self.index else 0.0, float(self.ends[self.index])


def cumulative_draw(final: Tensor, draw: float) -> CumulativeDraw:
    """Find where a draw in [0, 1) falls in the probabilities (vocab_size,), like `inverse_cdf`."""
    probabilities = final.cpu().numpy()
    ids = top_ids(probabilities, int(np.count_nonzero(probabilities)))
    sums = probabilities[ids].cumsum(dtype=np.float64)
    return CumulativeDraw(ids, sums / sums[-1], int(np.flatnonzero(ids == inverse_cdf(final, draw))[0]))
