"""The way from logits to a draw as tables: what each stage removed, exact over the whole vocabulary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from gpt.errors import GPTError
from gpt.models.checkpoints.vocabularies import Vocabulary
from gpt.sampling import SamplingParams, best, invert, stage_logits

StageName = Literal["repetition_penalty", "temperature", "top_k", "top_p", "min_p", "final"]


@dataclass(frozen=True)
class Stage:
    """One stage of the pipeline; "final" is all of them together, from the raw logits.

    logits, probabilities, log_probabilities: after it, float32 on the CPU, (vocab_size,); nats; -inf where removed.
    active: False where the stage left everything as it was. n_kept: tokens that can be drawn after it.
    n_removed, removed_mass: tokens that it took away, and the probability they had before it.
    entropy_before, entropy_after: bits; the perplexities are 2 to that power.
    """

    name: StageName
    active: bool
    logits: Tensor
    probabilities: Tensor
    log_probabilities: Tensor
    n_kept: int
    n_removed: int
    removed_mass: float
    entropy_before: float
    entropy_after: float

    @property
    def perplexity_before(self) -> float:
        return 2**self.entropy_before

    @property
    def perplexity_after(self) -> float:
        return 2**self.entropy_after


def pipeline(logits: Tensor, params: SamplingParams, *, previous_ids: Sequence[int] = ()) -> list[Stage]:
    """The five stages and the whole of them, for logits (vocab_size,); arguments and errors as in `distribution`."""
    rows = [torch.from_numpy(row) for row in stage_logits(logits, params, previous_ids)]
    *names, whole = get_args(StageName)
    stages = [_stage(name, *pair) for name, pair in zip(names, pairwise(rows), strict=True)]
    return [*stages, _stage(whole, rows[0], rows[-1])]


def _stage(name: StageName, before: Tensor, after: Tensor) -> Stage:
    exact = before.double().softmax(dim=0)
    log_p = after.double().log_softmax(dim=0)
    removed = (after == -math.inf) & (before > -math.inf)
    return Stage(
        name=name,
        active=not torch.equal(after, before),
        logits=after,
        probabilities=after.softmax(dim=0),
        log_probabilities=log_p.float(),
        n_kept=int((after > -math.inf).sum()),
        n_removed=int(removed.sum()),
        removed_mass=exact[removed].sum().item(),
        entropy_before=entropy_bits(exact),
        entropy_after=entropy_bits(log_p.exp()),
    )


def entropy_bits(probabilities: Tensor) -> float:
    """-sum p log2 p."""
    return torch.special.entr(probabilities).sum().item() / math.log(2)


@dataclass(frozen=True)
class Row:
    """One token of the vocabulary after one stage, "raw" being before the first. rank: 1 is the best.

    Of a removed token the logit and the log-probability (nats) are -inf, the probability is 0, the rank None.
    """

    stage: StageName | Literal["raw"]
    logit: float
    probability: float
    log_probability: float
    rank: int | None


def follow(logits: Tensor, stages: Sequence[Stage], token_id: int) -> list[Row]:
    """One token through all stages. logits, stages: what `pipeline` was given, and what it gave.

    Raises ValueError for an id outside the vocabulary.
    """
    if not 0 <= token_id < len(logits):
        raise GPTError("token.unknown", token=token_id, last=len(logits) - 1)
    raw = logits.detach().to("cpu", torch.float32)
    rows = [_row("raw", raw, raw.double().log_softmax(dim=0), token_id)]
    return rows + [_row(stage.name, stage.logits, stage.log_probabilities, token_id) for stage in stages]


def _row(name: StageName | Literal["raw"], logits: Tensor, log_p: Tensor, token_id: int) -> Row:
    logit, nats = logits[token_id].item(), log_p[token_id].item()
    rank = None if logit == -math.inf else rank_of(logits, token_id)
    return Row(name, logit, math.exp(nats), nats, rank)


def rank_of(logits: Tensor, token_id: int) -> int:
    """1 for the best; equals share a rank."""
    return 1 + int((logits > logits[token_id]).sum())


@dataclass(frozen=True)
class Strip:
    """A distribution laid end to end, the most likely token first, and where a number fell on it.

    ids: (n,) those of any probability, in the order of the draw: descending, ties by id. ends: (n,) float64, where
    the piece of each ends, the last at 1; it begins where the one before ends, the first at 0.
    draw: the number in [0, 1). place: which of the ids it fell on.
    """

    ids: np.ndarray
    ends: np.ndarray
    draw: float
    place: int

    @property
    def token_id(self) -> int:
        """The token that was drawn."""
        return int(self.ids[self.place])

    @property
    def bounds(self) -> tuple[float, float]:
        """Where the piece of the drawn token begins and ends."""
        return float(self.ends[self.place - 1]) if self.place else 0.0, float(self.ends[self.place])


def draw_strip(final: Tensor, draw: float) -> Strip:
    """Where a number falls on a distribution, (vocab_size,), by the inversion that sampling itself uses."""
    token_id = invert(final, draw)
    probabilities = final.cpu().numpy()
    ids = best(probabilities, np.count_nonzero(probabilities))
    sums = probabilities[ids].cumsum(dtype=np.float64)
    return Strip(ids, sums / sums[-1], draw, int(np.flatnonzero(ids == token_id)[0]))


@dataclass(frozen=True)
class Found:
    """A token that a search found, with its place in a distribution. text: its bytes as far as they are characters."""

    token_id: int
    text: str
    probability: float
    rank: int


def search_vocabulary(tokenizer: Vocabulary, logits: Tensor, query: str, *, limit: int = 20) -> list[Found]:
    """Tokens whose text holds the query, in either case; a query of digits also finds the token with that id.

    logits: (vocab_size,), of the distribution that probability and rank are told of. The id comes first, then the
    token that is the query itself, with or without a space before it, then the others, the most likely first.
    """
    texts = [tokenizer.token_bytes(token_id).decode("utf-8", "replace") for token_id in range(tokenizer.n_vocab)]
    wanted = query.lower()
    ids = [token_id for token_id, text in enumerate(texts) if wanted in text.lower()] if wanted else []
    numbered = int(query) if query.isascii() and query.isdecimal() and len(query) < 10 else None
    if numbered is not None and numbered < len(texts) and numbered not in ids:
        ids.append(numbered)
    scores = logits.detach().to("cpu", torch.float32)
    values = scores.tolist()

    def order(token_id: int) -> tuple[bool, int, float, int]:
        exact = 0 if texts[token_id] == query else 1 if texts[token_id].strip() == query.strip() else 2
        return token_id != numbered, exact, -values[token_id], token_id

    p = scores.double().softmax(dim=0)
    found = sorted(ids, key=order)[:limit]
    return [Found(token_id, texts[token_id], p[token_id].item(), rank_of(scores, token_id)) for token_id in found]
