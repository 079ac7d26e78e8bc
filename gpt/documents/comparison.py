"""Comparison of two documents during generation: where they first differ and how far their predictions diverge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from gpt.analysis.predictions import kl_divergence
from gpt.documents.document import common_prefix_length
from gpt.documents.generation import Generation, Step, together
from gpt.models.loading import LoadedModel
from gpt.sampling import SamplingParams, distribution


def paired_steps(
    left: Generation, right: Generation, left_params: SamplingParams, right_params: SamplingParams, max_new_tokens: int
) -> Iterator[tuple[Step | None, Step | None]]:
    """Yield pairs of steps, one from each document; None stands for a document that has finished.

    If both documents use the same model, they share their forward passes.
    """
    runs = left.steps(left_params, max_new_tokens), right.steps(right_params, max_new_tokens)
    return ((ours, theirs) for ours, theirs in together((left, right), runs))


def divergence_index(left: Sequence[int], right: Sequence[int]) -> int | None:
    """Return the first position at which two texts differ, or None if one is a prefix of the other."""
    n = common_prefix_length(left, right)
    return n if n < min(len(left), len(right)) else None


def same_vocabulary(left: LoadedModel, right: LoadedModel) -> bool:
    """Return whether each id stands for the same bytes in both models."""
    if left.model.config.vocab_size != right.model.config.vocab_size:
        return False
    a, b = left.tokenizer, right.tokenizer
    if a is b:
        return True
    same_size = (a.n_vocab, a.eot_id, a.special_ids) == (b.n_vocab, b.eot_id, b.special_ids)
    return same_size and all(a.token_bytes(token_id) == b.token_bytes(token_id) for token_id in range(a.n_vocab))


@dataclass(frozen=True)
class Divergence:
    """Kullback-Leibler divergence of the left prediction (p) from the right one (q) after one position, in bits.

    raw: divergence between the models' softmax outputs. final: divergence after each side's sampling stages; infinite
    if the left side can draw a token that the right side cannot.
    """

    position: int
    raw: float
    final: float


class Comparison:
    """The divergence between two documents with the same prompt, measured while they are generated.

    comparable: whether both have the same vocabulary and prompt; if not, nothing is measured. divergences: one per
    position measured so far.
    """

    def __init__(
        self, left: Generation, right: Generation, left_params: SamplingParams, right_params: SamplingParams
    ) -> None:
        self.left, self.right = left, right
        self.left_params, self.right_params = left_params, right_params
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

    def measure(self, limit: int | None = None) -> int:
        """Measure up to `limit` more positions (default: all) and return how many were measured."""
        start, end = len(self.divergences), self.n_measurable
        end = end if limit is None else min(end, start + limit)
        self.divergences += [self._divergence_at(position) for position in range(start, end)]
        return max(0, end - start)

    @torch.inference_mode()
    def _divergence_at(self, position: int) -> Divergence:
        previous_ids = self.left.ids[: position + 1]
        raw, final = [], []
        for document, params in ((self.left, self.left_params), (self.right, self.right_params)):
            logits = document.logits(position).cpu()
            raw.append(logits.double().log_softmax(dim=0))
            final.append(distribution(logits, params, previous_ids=previous_ids).final.double().log())
        return Divergence(position, kl_divergence(*raw).item(), kl_divergence(*final).item())
