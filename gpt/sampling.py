"""From logits to a token: pure stages over the whole vocabulary, each shown before and after.

The order and the arithmetic are those of transformers' logits processors (`generation/logits_process.py`):
repetition penalty, temperature, top-k, top-p, min-p. The draw is our own: one uniform number, inverted over
the final distribution from the most likely token down, so that it can be shown, undone and repeated.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral, Real

import numpy as np
import torch
from torch import Tensor

from gpt.errors import GPTError


@dataclass(frozen=True)
class SamplingParams:
    """How a token is drawn; None means off.

    temperature: divides the logits; above 1 flattens, below 1 sharpens, 0 always takes the best token.
    top_k: only the k best tokens stay.
    top_p: only the smallest set of best tokens that holds this much probability stays (arXiv 1904.09751).
    min_p: only tokens at least this fraction as likely as the best stay (arXiv 2407.01082).
    repetition_penalty: weakens what was said before, above 1 (arXiv 1909.05858).
    seed: fixes every draw; None asks for a fresh one.

    Raises ValueError, naming the value and the limit.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if not is_number(self.temperature) or not 0 <= self.temperature < math.inf:
            raise GPTError("argument.number_min", name="temperature", low=0, value=self.temperature)
        if self.top_k is not None and not (is_whole(self.top_k) and self.top_k >= 1):
            raise GPTError("argument.whole_number_min", name="top_k", low=1, value=self.top_k)
        if self.top_p is not None and not (is_number(self.top_p) and 0 < self.top_p <= 1):
            raise GPTError("sampling.top_p", value=self.top_p)
        if self.min_p is not None and not (is_number(self.min_p) and 0 <= self.min_p <= 1):
            raise GPTError("argument.number_range", name="min_p", low=0, high=1, value=self.min_p)
        penalty = self.repetition_penalty
        if penalty is not None and not (is_number(penalty) and 0 < penalty < math.inf):
            raise GPTError("argument.above", name="repetition_penalty", low=0, value=penalty)
        if self.seed is not None and not (is_whole(self.seed) and self.seed >= 0):
            raise GPTError("argument.whole_number_min", name="seed", low=0, value=self.seed)


def with_seed(params: SamplingParams) -> SamplingParams:
    """The same settings, with a fresh random seed where seed is None."""
    return params if params.seed is not None else replace(params, seed=secrets.randbelow(2**31))


@dataclass(frozen=True)
class Stages:
    """The next-token distribution after each stage: float32 on the CPU, (vocab_size,), summing to 1.

    A stage that is off equals the one before it; `final` is the last. kept: (vocab_size,), True for the
    tokens that no stage removed. entropy: of `final`, in bits.
    """

    raw: Tensor
    repetition_penalty: Tensor
    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    min_p: Tensor
    final: Tensor
    kept: Tensor
    entropy: float


def distribution(logits: Tensor, params: SamplingParams, *, previous_ids: Sequence[int] = ()) -> Stages:
    """Every stage on the way from logits, (vocab_size,), to the distribution that the token is drawn from.

    previous_ids: what the repetition penalty weakens, each id once. A logit may be -inf (never drawn).
    Raises ValueError for +inf, NaN, nothing but -inf, and ids outside the vocabulary.
    """
    steps = stage_logits(logits, params, previous_ids)
    probs = [softmax(steps[0])]
    for before, after in pairwise(steps):
        probs.append(probs[-1] if after is before else softmax(after))
    final = probs[-1]
    entropy = torch.special.entr(final.double()).sum().item() / math.log(2)
    return Stages(*probs, final=final, kept=torch.from_numpy(steps[-1] > -math.inf), entropy=entropy)


def choose(logits: Tensor, params: SamplingParams, u: float, *, previous_ids: Sequence[int] = ()) -> int:
    """The token that u falls on: `invert(distribution(...).final, u)`, without the stages on the way."""
    if params.temperature == 0:
        return int(penalise(checked(logits), params.repetition_penalty, previous_ids).argmax())
    return invert(softmax(stage_logits(logits, params, previous_ids)[-1]), u)


def uniform(seed: int, position: int) -> float:
    """The number in [0, 1) for one position of one seed: 53 bits of a hash, the same on every machine.

    Nothing is drawn in turn: any position can be asked for, alone or in a batch, in any order.
    """
    digest = hashlib.blake2b(f"{seed:x}:{position:x}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


def invert(final: Tensor, u: float) -> int:
    """The token where u, in [0, 1), falls: the first, from the most likely down, whose sum exceeds u.

    final: (vocab_size,) probabilities. Ties go by id. Sums are float64; no token of probability 0 is hit.
    """
    if not 0 <= u < 1:
        raise GPTError("argument.below_one", name="u", value=u)
    probs = final.cpu().numpy()
    target = u * probs.sum(dtype=np.float64)
    for enough in (probs >= probs.max() / 2**10, probs > 0):  # the sums do not depend on how many are looked at
        down = np.sort(probs[enough])[::-1]  # numbers alone are sorted many times as fast as ids by their numbers
        sums = down.cumsum(dtype=np.float64)
        if sums[-1] > target:
            break
    rank = min(sums.searchsorted(target, side="right"), len(down) - 1)
    equal = np.flatnonzero(probs == down[rank])
    return int(equal[rank - np.count_nonzero(probs > down[rank])])


def stage_logits(logits: Tensor, params: SamplingParams, previous_ids: Sequence[int] = ()) -> list[np.ndarray]:
    """Logits before and after each of the five stages, (vocab_size,) float32; the same object where one is off.

    Numpy, because on a row of this size each of its calls costs a third of torch's.
    """
    raw = checked(logits)
    penalised = penalise(raw, params.repetition_penalty, previous_ids)
    tempered = temper(penalised, params.temperature)
    if params.temperature == 0:  # one token is left: nothing to remove
        return [raw, penalised, tempered, tempered, tempered, tempered]
    few = keep_top_k(tempered, params.top_k)
    nucleus = keep_top_p(few, params.top_p)
    return [raw, penalised, tempered, few, nucleus, keep_min_p(nucleus, params.min_p)]


def checked(logits: Tensor) -> np.ndarray:
    """Logits that a token can be chosen from: (vocab_size,) float32, on the CPU."""
    if logits.dim() != 1 or len(logits) == 0:
        raise GPTError("sampling.logits_shape", shape=tuple(logits.shape))
    raw = logits.detach().to("cpu", torch.float32).numpy()
    if not np.isfinite(raw.max()):
        raise GPTError("sampling.logits_not_finite")
    return raw


def penalise(logits: np.ndarray, penalty: float | None, previous_ids: Sequence[int]) -> np.ndarray:
    """Logits of earlier tokens divided by the penalty where positive, multiplied where negative."""
    if penalty is None or len(previous_ids) == 0:
        return logits
    ids = np.asarray(previous_ids)
    if ids.dtype.kind not in "iu":
        raise GPTError("sampling.previous_ids")
    for token_id in (ids.min(), ids.max()):
        if not 0 <= token_id < len(logits):
            raise GPTError("token.unknown", token=token_id, last=len(logits) - 1)
    penalised = logits.copy()
    with np.errstate(all="ignore"):
        said, factor = logits[ids], np.float32(penalty)
        penalised[ids] = np.where(said < 0, said * factor, said / factor)
    if not np.isfinite(penalised.max()):
        raise GPTError("sampling.penalty_overflow", value=penalty)
    return penalised


def temper(logits: np.ndarray, temperature: float) -> np.ndarray:
    """logits / temperature; at 0 only the best token, the lowest id of equals, stays above -inf."""
    if temperature == 1:
        return logits
    if temperature == 0:
        return keep_best(logits, 1)
    with np.errstate(all="ignore"):
        tempered = logits / np.float32(temperature)
        if not np.isfinite(tempered.max()):  # out of float32's reach: the same distribution, shifted
            tempered = ((logits.astype(np.float64) - logits.max()) / temperature).astype(np.float32)
    return tempered


def keep_top_k(logits: np.ndarray, k: int | None) -> np.ndarray:
    """Only the k best stay, exactly k: ties go to the lower id."""
    return logits if k is None or k >= len(logits) else keep_best(logits, k)


def keep_top_p(logits: np.ndarray, p: float | None) -> np.ndarray:
    """Only the fewest best tokens that hold probability p stay, at least one: ties go to the lower id."""
    if p is None or p == 1:
        return logits
    ascending = np.full_like(logits, -math.inf)
    alive = np.sort(logits[logits > -math.inf])
    ascending[len(logits) - len(alive) :] = alive
    removed = int((softmax(ascending).cumsum(dim=-1) <= 1 - p).sum())
    return keep_best(logits, max(1, len(logits) - removed))


def keep_min_p(logits: np.ndarray, p: float | None) -> np.ndarray:
    """Only tokens whose probability is at least p times that of the best stay."""
    if p is None or p == 0:
        return logits
    probs = softmax(logits).numpy()
    return np.where(probs < np.float32(p) * probs.max(), np.float32(-math.inf), logits)


def keep_best(logits: np.ndarray, count: int) -> np.ndarray:
    """Only the `count` largest stay, the others are -inf: ties go to the lower id."""
    least = np.partition(logits, -count)[-count]
    kept = torch.threshold(torch.from_numpy(logits), float(least), -math.inf).numpy()  # what is larger
    equal = np.flatnonzero(logits == least)[: count - np.count_nonzero(logits > least)]
    kept[equal] = logits[equal]
    return kept


def best(values: np.ndarray, count: int) -> np.ndarray:
    """Ids of the `count` largest of values, (n,), from the largest down, ties by lower id."""
    if count < len(values):
        least = torch.from_numpy(values).topk(count, sorted=False).values.min().item()
        ids = np.flatnonzero(values >= least)  # count of them, and more only where some equal the least
    else:
        ids = np.arange(len(values))
    return ids[np.argsort(-values[ids], kind="stable")[:count]]


def softmax(logits: np.ndarray) -> Tensor:
    """exp(logits), divided by its sum."""
    return torch.from_numpy(logits).softmax(dim=-1)


def is_number(value: object) -> bool:
    """A real number that a float can hold; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_whole(value: object) -> bool:
    """A whole number; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)
