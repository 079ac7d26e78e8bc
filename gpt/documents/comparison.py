"""Comparison of two documents during generation: where they first differ and how far their predictions diverge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from gpt.analysis.predictions import kl_divergence
from gpt.documents.document import common_prefix_length
from gpt.documents.generation import Generation
from gpt.models.loading import LoadedModel
from gpt.sampling import SamplingParams, distribution


def divergence_index(left: Sequence[int], right: Sequence[int]) -> int | None:
    """Return the first position at which two texts differ, or None if one is a prefix of the other."""
    n = common_prefix_length(left, right)
    return n if n < min(len(left), len(right)) else None


def same_vocabulary(left: LoadedModel, right: LoadedModel) -> bool:
    """Return whether each id stands for the same bytes in both models."""
    a, b = left.tokenizer, right.tokenizer
    sizes = [(each.model.config.vocab_size, each.tokenizer.n_vocab) for each in (left, right)]
    if sizes[0] != sizes[1] or (a.eot_id, a.special_ids) != (b.eot_id, b.special_ids):
        return False
    return a is b or all(a.token_bytes(token_id) == b.token_bytes(token_id) for token_id in range(a.n_vocab))


class Divergence(NamedTuple):
    """Kullback-Leibler divergence of the left prediction (p) from the right one (q) after one position, in bits.

    raw: divergence between the models' softmax outputs. final: divergence after each side's sampling stages; infinite
    if the left side can draw a token that the right side cannot.
    """

    raw: float
    final: float


class Comparison:
    """The divergence between two documents with the same prompt, measured while they are generated.

    params: the settings of each. comparable: whether both have the same vocabulary and prompt; if not, nothing is
    measured. divergences: one for each position measured so far, from the first on.
    """

    def __init__(self, left: Generation, right: Generation, *params: SamplingParams) -> None:
        self.left, self.right, self.params = left, right, params
        self.same_vocabulary = same_vocabulary(left.loaded, right.loaded)
        same_prompt = (left.prompt_ids, left.held) == (right.prompt_ids, right.held)
        self.comparable = self.same_vocabulary and same_prompt
        self.divergences: list[Divergence] = []

    @property
    def divergence_index(self) -> int | None:
        return divergence_index(self.left.ids, self.right.ids) if self.comparable else None

    @property
    def n_measurable(self) -> int:
        """Number of positions in the shared text that both documents have read."""
        left, right = self.left, self.right
        return min(common_prefix_length(left.ids, right.ids), left.n_read, right.n_read) if self.comparable else 0

    @torch.inference_mode()
    def measure(self, limit: int | None = None) -> int:
        """Measure up to `limit` more positions (default: all) and return how many were measured."""
        positions = range(len(self.divergences), self.n_measurable)[:limit]
        for position in positions:
            raw, final, previous_ids = [], [], self.left.ids[: position + 1]
            for document, params in zip((self.left, self.right), self.params, strict=True):
                logits = document.logits(position).cpu()
                raw.append(logits.double().log_softmax(dim=0))
                final.append(distribution(logits, params, previous_ids=previous_ids).final.double().log())
            self.divergences.append(Divergence(kl_divergence(*raw).item(), kl_divergence(*final).item()))
        return len(positions)
