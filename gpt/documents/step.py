"""A generated token, and the function that samples it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from gpt.inference.engine import NextTokenDistribution
from gpt.inference.threads import threads_for
from gpt.sampling import SamplingParams, rank_of, sample_token, uniform_draw

FinishReason = Literal["end_of_text", "max_new_tokens", "context_full", "stopped"]


@dataclass(frozen=True)
class Step:
    """One generated token.

    Attributes:
        token_id: The drawn token.
        text: Characters completed by the token; "" for end-of-text or part of a character.
        probability: Probability of the token in the raw softmax, before sampling.
        rank: Rank of the token in the raw softmax, 1 for the most likely.
        entropy: Entropy of the raw softmax, in bits.
        position: Index in the text, counting the prompt and dropped tokens.
        draw: Uniform number that selected the token.
        finish_reason: Reason the text ends; None before the last step.
    """

    token_id: int
    text: str
    probability: float
    rank: int
    entropy: float
    position: int
    draw: float
    finish_reason: FinishReason | None = None


def sample_step(
    predicted: NextTokenDistribution, params: SamplingParams, position: int, previous_ids: Sequence[int]
) -> Step:
    """Sample the token at a position. The caller fills in its text. params: must have a seed."""
    logits = predicted.logits.cpu()
    assert params.seed is not None  # see with_seed
    draw = uniform_draw(params.seed, position)
    with threads_for(len(logits)):
        token_id = sample_token(logits, params, draw, previous_ids=previous_ids)
    return Step(
        token_id=token_id,
        text="",
        probability=math.exp(logits[token_id].item() - predicted.log_sum),
        rank=int(rank_of(logits, torch.tensor([token_id]))),
        entropy=predicted.entropy,
        position=position,
        draw=draw,
    )
