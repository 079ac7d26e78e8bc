"""Two documents side by side: written in step, where they part, and how far their predictions lie apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest

import torch
from torch import Tensor

from gpt.documents.branch_cache import common_length
from gpt.documents.generation import Generation, Step
from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.inference.products import LARGE
from gpt.inference.zero_gpu import on_zero_gpu
from gpt.models.loading import LoadedModel
from gpt.sampling import SamplingParams, distribution


def in_step(
    left: Generation, right: Generation, left_params: SamplingParams, right_params: SamplingParams, max_new_tokens: int
) -> Iterator[tuple[Step | None, Step | None]]:
    """One token of each at a time; None for the one that has come to its end before the other.

    Where one reading of the weights serves both, they are read in one pass.
    """
    ways = left.steps(left_params, max_new_tokens), right.steps(right_params, max_new_tokens)
    engine, plain = left.loaded.engine, all(document.edits in (None, Edits()) for document in (left, right))
    shared = engine is right.loaded.engine and plain and engine.size >= LARGE and not on_zero_gpu()
    return _together(*ways) if shared else zip_longest(*ways)


def _together(left: Iterator[Step], right: Iterator[Step]) -> Iterator[tuple[Step | None, Step | None]]:
    """`zip_longest`, but that both ask the engine at the same time."""
    with ThreadPoolExecutor(1, "beside") as beside:
        while True:
            other = beside.submit(next, right, None)
            both = next(left, None), other.result()
            if both == (None, None):
                return
            yield both


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


class Comparison:
    """Two documents that go on from one prompt, and how far their predictions lie apart as they grow.

    comparable: whether they have one vocabulary; where not, nothing is measured and no token is the same as another.
    divergences: what was measured so far, one for each position from 0 on.
    """

    def __init__(
        self, left: Generation, right: Generation, left_params: SamplingParams, right_params: SamplingParams
    ) -> None:
        self.left, self.right = left, right
        self.left_params, self.right_params = left_params, right_params
        self.comparable = same_vocabulary(left.loaded, right.loaded)
        self.divergences: list[Divergence] = []

    @property
    def parting(self) -> int | None:
        """The first position where the texts differ."""
        return parting(self.left.ids, self.right.ids) if self.comparable else None

    @property
    def measurable(self) -> int:
        """How many positions both have read with the same text up to them."""
        left, right = self.left, self.right
        return min(common_length(left.ids, right.ids), left.n_read, right.n_read) if self.comparable else 0

    def measure(self, most: int | None = None) -> int:
        """Measure up to `most` further positions, all for None; returns how many it were."""
        start, end = len(self.divergences), self.measurable
        end = end if most is None else min(end, start + most)
        self.divergences += [self._at(position) for position in range(start, end)]
        return max(0, end - start)

    @torch.inference_mode()
    def _at(self, position: int) -> Divergence:
        previous_ids = self.left.ids[: position + 1]
        p, q = self.left.logits(position), self.right.logits(position)
        finals = (
            distribution(logits, params, previous_ids=previous_ids).final
            for logits, params in ((p, self.left_params), (q, self.right_params))
        )
        return Divergence(position, _kl_bits(p, q), relative_entropy(*finals))


def divergences(
    left: Generation, right: Generation, left_params: SamplingParams, right_params: SamplingParams
) -> list[Divergence]:
    """One for each position that both have read with the same text up to it. Raises ValueError for two vocabularies."""
    comparison = Comparison(left, right, left_params, right_params)
    if not comparison.comparable:
        raise GPTError("compare.vocabularies", left=left.loaded.name, right=right.loaded.name)
    comparison.measure()
    return comparison.divergences


def _kl_bits(p_logits: Tensor, q_logits: Tensor) -> float:
    """The same as `relative_entropy` of the softmaxes, where a probability may be too small for a float32."""
    p, q = (logits.cpu().double().log_softmax(dim=0) for logits in (p_logits, q_logits))
    possible = p > -math.inf
    p, q = p[possible], q[possible]
    return max(0.0, (p.exp() * (p - q)).sum().item()) / math.log(2)


def relative_entropy(p: Tensor, q: Tensor) -> float:
    """sum p log2(p / q), 0 where p is 0 and infinite where only q is."""
    possible = p > 0
    p, q = p[possible].double(), q[possible].double()
    return max(0.0, (p * (p / q).log2()).sum().item())
