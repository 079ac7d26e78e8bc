"""Two documents side by side: written in step, where they part, and how far their predictions lie apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import torch
from torch import Tensor

from gpt.analysis import kl_bits
from gpt.documents.shelf import common_length
from gpt.generate import Generation, Step
from gpt.loading import LoadedModel
from gpt.sampling import SamplingParams, distribution


def in_step(
    left: Generation, right: Generation, left_params: SamplingParams, right_params: SamplingParams, max_new_tokens: int
) -> Iterator[tuple[Step | None, Step | None]]:
    """One token of each at a time; None for the one that has come to its end before the other."""
    return zip_longest(left.steps(left_params, max_new_tokens), right.steps(right_params, max_new_tokens))


def parting(left: Sequence[int], right: Sequence[int]) -> int | None:
    """The first position where two texts differ; None where one is the beginning of the other."""
    n = common_length(left, right)
    return n if n < min(len(left), len(right)) else None


def same_vocabulary(left: LoadedModel, right: LoadedModel) -> bool:
    """Whether each id stands for the same bytes in both, so that their predictions can be compared."""
    if left.model.config.vocab_size != right.model.config.vocab_size:
        return False
    a, b = left.tokenizer, right.tokenizer
    if a is b:
        return True
    same_size = (a.n_vocab, a.eot_id) == (b.n_vocab, b.eot_id)
    return same_size and all(a.token_bytes(token_id) == b.token_bytes(token_id) for token_id in range(a.n_vocab))


@dataclass(frozen=True)
class Divergence:
    """How far two predictions of what follows one position lie apart: Kullback-Leibler, left against right, in bits.

    raw: of the models' own softmax. final: after each side's settings; infinite where the right can never draw a
    token that the left can.
    """

    position: int
    raw: float
    final: float


@torch.inference_mode()
def divergences(
    left: Generation,
    right: Generation,
    left_params: SamplingParams,
    right_params: SamplingParams,
    *,
    start: int = 0,
) -> list[Divergence]:
    """One for each position from `start` on that both have read with the same text up to it.

    Raises ValueError for two vocabularies.
    """
    if not same_vocabulary(left.loaded, right.loaded):
        raise ValueError(f"{left.loaded.name} and {right.loaded.name} have different vocabularies: no common measure")
    end = min(common_length(left.ids, right.ids), left.n_read, right.n_read)
    if start >= end:
        return []
    models = left.loaded.model, right.loaded.model
    raw = kl_bits(models[0], left.states()[start:end], right.states()[start:end], other_model=models[1])
    found = []
    for position, bits in zip(range(start, end), raw.tolist(), strict=True):
        previous_ids = left.ids[: position + 1]
        p = distribution(left.logits(position), left_params, previous_ids=previous_ids).final
        q = distribution(right.logits(position), right_params, previous_ids=previous_ids).final
        found.append(Divergence(position, bits, relative_entropy(p, q)))
    return found


def relative_entropy(p: Tensor, q: Tensor) -> float:
    """sum p log2(p / q), 0 where p is 0 and infinite where only q is."""
    possible = p > 0
    p, q = p[possible].double(), q[possible].double()
    return max(0.0, (p * (p / q).log2()).sum().item())
