"""Beam search that records every candidate, including pruned ones.

The order and the stopping rule follow transformers (`generation/utils.py`, early_stopping=False). Like transformers,
this module simplifies the length penalty of Wu et al., "Google's Neural Machine Translation System" (2016), arXiv
1609.08144.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gpt.cache import KVCache
from gpt.documents.generation import Generation
from gpt.errors import check_integer, check_number

MAX_WIDTH = 32
Outcome = Literal["kept", "pruned", "finished"]


@dataclass(frozen=True)
class Candidate:
    """One possible continuation of a beam by one token.

    Attributes:
        number: Index in `BeamSearch.candidates`.
        parent: Index of the preceding candidate; None for the first new token.
        token_id: The token.
        depth: Number of new tokens so far; 1 for the first.
        log_probability: Log-probability of this token, in nats.
        total: Log-probability of all new tokens together, in nats.
        score: total / depth^length_penalty, used to rank finished texts.
        outcome: "kept" if the search continues from it, "finished" if the text is complete, "pruned" if it is dropped.
    """

    number: int
    parent: int | None
    token_id: int
    depth: int
    log_probability: float
    total: float
    score: float
    outcome: Outcome


@dataclass(frozen=True)
class Beam:
    """A finished text: its new tokens, including end-of-text, its score, and the index of its last `Candidate`."""

    ids: tuple[int, ...]
    score: float
    candidate: int


class BeamSearch:
    """Search for the best continuations of a document without changing it. Each step extends all beams by one token.

    `candidates` lists the candidates of all steps, each after its parent. As in transformers, there are width times 2
    per step, or times one more than the number of end tokens. `finished` lists up to `width` finished texts, best
    first. `done` becomes True when the search ends.

    Args:
        document: The text to continue.
        width: Number of beams, 1 to 32.
        max_new_tokens: Maximum number of new tokens.
        length_penalty: Positive values favour longer texts, negative values shorter ones.

    Raises:
        ValueError: If an argument is out of range or the document is full.
    """

    def __init__(self, document: Generation, width: int, max_new_tokens: int, *, length_penalty: float = 1.0) -> None:
        check_integer("width", width, 1, MAX_WIDTH)
        check_integer("max_new_tokens", max_new_tokens, 1)
        check_number("length_penalty", length_penalty, -10, 10)
        block_size = document.loaded.model.config.block_size
        document.check_room()
        self.document, self.width, self.length_penalty = document, width, length_penalty
        self.max_depth = min(max_new_tokens, block_size + 1 - len(document.ids))
        self.candidates: list[Candidate] = []
        self.finished: list[Beam] = []
        self.done = False
        self._beams: list[Candidate] = []  # to continue
        self._cache: KVCache | None = None

    @property
    def best(self) -> Beam:
        """The best finished text."""
        return self.finished[0]

    def run(self) -> Beam:
        """Run all steps and return the best text."""
        for _ in self.steps():
            pass
        return self.best

    def steps(self) -> Iterator[list[Candidate]]:
        """Yield the candidates of each step until the search is done."""
        while not self.done:
            yield self.step()

    @torch.inference_mode()
    def step(self) -> list[Candidate]:
        """Extend every beam by one token and return the candidates in descending order of `total`."""
        log_p = self._logits().log_softmax(dim=1).cpu()  # (beams, vocab_size)
        totals = log_p + torch.tensor([beam.total for beam in self._beams] or [0.0], device="cpu")[:, None]
        ends = self.document.loaded.tokenizer.eot_ids
        count = min(max(2, 1 + len(ends)) * self.width, totals.numel())
        values, indices = totals.flatten().topk(count)
        depth = 1 + (self._beams[0].depth if self._beams else 0)
        new: list[Candidate] = []
        kept: list[Candidate] = []
        rows: list[int] = []  # of the beams that those kept extend
        for order, (total, index) in enumerate(zip(values.tolist(), indices.tolist(), strict=True)):
            if total == -math.inf:
                break
            row, token_id = divmod(index, totals.shape[1])
            is_end = depth == self.max_depth or token_id in ends
            fits = order < self.width if is_end else len(kept) < self.width
            candidate = Candidate(
                number=len(self.candidates),
                parent=self._beams[row].number if self._beams else None,
                token_id=token_id,
                depth=depth,
                log_probability=log_p[row, token_id].item(),
                total=total,
                score=total / depth**self.length_penalty,
                outcome="pruned" if not fits else "finished" if is_end else "kept",
            )
            self.candidates.append(candidate)
            new.append(candidate)
            if candidate.outcome == "kept":
                kept.append(candidate)
                rows.append(row)
        ended = [Beam(self.ids(c.number), c.score, c.number) for c in new if c.outcome == "finished"]
        self.finished = sorted([*self.finished, *ended], key=lambda beam: -beam.score)[: self.width]
        full = len(self.finished) == self.width
        self.done = not kept or (full and kept[0].score <= self.finished[-1].score)
        if self.done:
            self.release()
        elif self._cache is None:
            self._cache = self.document.fork(len(kept), len(self.document.ids) + self.max_depth - 1)
        else:
            self._cache.select(torch.tensor(rows, device=self._cache.k.device))
        self._beams = kept
        return new

    def release(self) -> None:
        """Free the memory held by a search that will not continue."""
        self._cache = None

    def ids(self, number: int) -> tuple[int, ...]:
        """Return the new tokens up to and including the candidate's own."""
        ids: list[int] = []
        step: int | None = number
        while step is not None:
            ids.append(self.candidates[step].token_id)
            step = self.candidates[step].parent
        return tuple(ids[::-1])

    def _logits(self) -> Tensor:
        """Compute the next-token logits for each beam, (beams, vocab_size); (1, vocab_size) in the first step."""
        document, cache, model = self.document, self._cache, self.document.loaded.model
        if cache is None:  # before the first step
            document.read()
            return document.logits(document.n_read - 1)[None]
        new: list[tuple[int, ...]] = [(beam.token_id,) for beam in self._beams]
        if cache.begin(cache.length + 1):
            new = [(*document.ids, *self.ids(beam.number)) for beam in self._beams]
        hidden = model.hidden_states(torch.tensor(new, device=cache.k.device), cache=cache, edits=document.edits)
        return model.logits(hidden[:, -1]).float()  # hidden: (beams, T, C)
