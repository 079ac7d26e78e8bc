"""From logits to a token: stages that are pure functions over the whole vocabulary, then one reproducible draw.

Order and arithmetic of the stages are those of transformers' logits processors (`generation/logits_process.py`):
repetition penalty, temperature, top-k, top-p, min-p. The draw inverts the cumulative distribution at a uniform number
that depends on the seed and the position alone.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from gpt.checks import check_above, check_below_one, check_integer, check_number, check_token_id, is_number
from gpt.errors import GPTError

LIKELY = 4096  # largest logits among which the edge of top-p is looked for before the whole vocabulary is sorted
SUM_LANES = 4  # float32 sums that the narrowest vector unit keeps side by side
OTHER_ERRORS = 1e-6  # of float32 exponentials, quotients and sums of probabilities


@dataclass(frozen=True)
class SamplingParams:
    """Settings of the stages and the seed of the draw; None turns a stage off.

    temperature: divides the logits; above 1 flattens, below 1 sharpens the distribution, 0 is greedy.
    top_k: keeps the k most likely tokens; 0 becomes None.
    top_p: keeps the smallest set of most likely tokens with at least this probability (arXiv 1904.09751).
    min_p: keeps tokens at least this fraction as likely as the most likely one (arXiv 2407.01082).
    repetition_penalty: above 1 lowers the logits of tokens that occurred before (arXiv 1909.05858).
    seed: determines every draw; None: a random seed.

    Raises ValueError, naming the value and the limit.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature, 0)
        if self.top_k is not None:
            check_integer("top_k", self.top_k, 0)
            object.__setattr__(self, "top_k", self.top_k or None)
        if self.top_p is not None and not (is_number(self.top_p) and 0 < self.top_p <= 1):
            raise GPTError(
                "sampling.top_p", "top_p must be a number above 0 and at most 1, not {value!r}", value=self.top_p
            )
        if self.min_p is not None:
            check_number("min_p", self.min_p, 0, 1)
        if self.repetition_penalty is not None:
            check_above("repetition_penalty", self.repetition_penalty, 0)
        if self.seed is not None:
            check_integer("seed", self.seed, 0)


def with_seed(params: SamplingParams) -> SamplingParams:
    """Return the same settings, with a fresh random seed if seed is None. Raises ValueError for another type."""
    if not isinstance(params, SamplingParams):
        raise GPTError("sampling.params", "params must be SamplingParams(...), not {type}", type=type(params))
    return params if params.seed is not None else replace(params, seed=secrets.randbelow(2**31))


StageName = Literal["repetition_penalty", "temperature", "top_k", "top_p", "min_p", "final"]


@dataclass(frozen=True)
class Stages:
    """The next-token distribution after each stage: float32 on the CPU, (vocab_size,), summing to 1.

    A stage that is off equals the one before it; `final` is the last.

    Attributes:
        kept: (vocab_size,), True for the tokens that no stage removed.
        entropy: Entropy of `final`, in bits.
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
    """Return the distribution after each stage.

    Args:
        logits: (vocab_size,); a token with -inf is never drawn.
        params: Settings of the stages.
        previous_ids: Tokens that the repetition penalty applies to, each once.

    Raises:
        ValueError: For +inf, NaN, only -inf, and ids outside the vocabulary.
    """
    rows = stage_logits(logits, params, previous_ids)
    probs = [softmax(rows[0])]
    for before, after in pairwise(rows):
        probs.append(probs[-1] if after is before else softmax(after))
    after_stages = dict(zip(("raw", *get_args(StageName)), [*probs, probs[-1]], strict=True))
    kept = torch.from_numpy(rows[-1] > -math.inf)
    return Stages(**after_stages, kept=kept, entropy=entropy_bits(probs[-1].double()).item())


def entropy_bits(p: Tensor) -> Tensor:
    """Entropy -sum p log2 p over the last dimension, in bits: (..., V) -> (...)."""
    return torch.special.entr(p).sum(dim=-1) / math.log(2)


def rank_of(logits: Tensor, ids: Tensor) -> Tensor:
    """The rank of one id in each row, 1 for the largest logit; equals share a rank: (..., V), (..., 1) -> (...)."""
    return 1 + (logits > logits.gather(-1, ids)).count_nonzero(dim=-1)


def sample_token(logits: Tensor, params: SamplingParams, u: float, *, previous_ids: Sequence[int] = ()) -> int:
    """Equals `inverse_cdf(distribution(...).final, u)`, without the distributions of the earlier stages."""
    if params.temperature == 0:
        return int(apply_repetition_penalty(check_logits(logits), params.repetition_penalty, previous_ids).argmax())
    return inverse_cdf(softmax(stage_logits(logits, params, previous_ids)[-1]), u)


def uniform_draw(seed: int, position: int) -> float:
    """The number in [0, 1) for one position of one seed: 53 bits of a hash, the same on every machine.

    Independent of the order in which positions are drawn, and of whether they are drawn alone or in a batch.
    """
    digest = hashlib.blake2b(f"{seed:x}:{position:x}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


def inverse_cdf(final: Tensor, u: float) -> int:
    """The first token, in descending order of probability, at which the cumulative probability exceeds u in [0, 1).

    final: (vocab_size,) probabilities. Ties go by id. Sums are float64; no token of probability 0 is drawn.
    """
    check_below_one("u", u)
    probs = final.cpu().numpy()
    target = u * probs.sum(dtype=np.float64)
    for candidates in (probs >= probs.max() / 2**10, probs > 0):  # the most likely tokens are nearly always enough
        descending = np.sort(probs[candidates])[::-1].copy()  # faster than sorting ids by value
        sums = torch.from_numpy(descending).cumsum(dim=0, dtype=torch.float64).numpy()  # faster than numpy's
        if sums[-1] > target:
            break
    rank = min(sums.searchsorted(target, side="right"), len(descending) - 1)
    tied = np.flatnonzero(probs == descending[rank])
    return int(tied[rank - np.count_nonzero(probs > descending[rank])])


def stage_logits(logits: Tensor, params: SamplingParams, previous_ids: Sequence[int] = ()) -> list[np.ndarray]:
    """Logits before and after each stage, (vocab_size,) float32; the same object where one is off.

    In numpy, whose overhead per call is a third of torch's.
    """
    raw = check_logits(logits)
    rows = [raw, apply_repetition_penalty(raw, params.repetition_penalty, previous_ids)]
    for name, stage in STAGES:
        rows.append(stage(rows[-1], getattr(params, name)))
    return rows


def check_logits(logits: Tensor) -> np.ndarray:
    """logits (vocab_size,) as float32 on the CPU. Raises ValueError for another shape, +inf, NaN or only -inf."""
    if logits.dim() != 1 or len(logits) == 0:
        raise GPTError(
            "sampling.logits_shape",
            "logits must be one row, a number per token, not of shape {shape}",
            shape=tuple(logits.shape),
        )
    raw = logits.detach().to("cpu", torch.float32).numpy()
    if not np.isfinite(raw.max()):
        raise GPTError(
            "sampling.logits_not_finite", "logits must be finite or -inf: these contain +inf or NaN, or only -inf"
        )
    return raw


def apply_repetition_penalty(logits: np.ndarray, penalty: float | None, previous_ids: Sequence[int]) -> np.ndarray:
    """Logits of previous ids divided by the penalty where positive, multiplied where negative."""
    if penalty is None or len(previous_ids) == 0:
        return logits
    ids = np.asarray(previous_ids)
    if ids.dtype.kind not in "iu":
        raise GPTError("sampling.previous_ids", "previous_ids must be token ids, whole numbers")
    for token_id in (ids.min(), ids.max()):
        check_token_id(token_id, len(logits))
    penalised = logits.copy()
    with np.errstate(all="ignore"):
        previous, factor = logits[ids], np.float32(penalty)
        penalised[ids] = np.where(previous < 0, previous * factor, previous / factor)
    if not np.isfinite(penalised.max()):
        raise GPTError(
            "sampling.penalty_overflow",
            "repetition_penalty {value!r} takes these logits beyond the range of a float",
            value=penalty,
        )
    return penalised


def apply_temperature(logits: np.ndarray, temperature: float) -> np.ndarray:
    """logits / temperature; at 0 only the largest, the lowest id of equals, stays above -inf."""
    if temperature == 1:
        return logits
    if temperature == 0:
        return keep_largest(logits, 1)
    with np.errstate(all="ignore"):
        scaled = logits / np.float32(temperature)
        if not np.isfinite(scaled.max()):  # overflow in float32: subtract the maximum first
            scaled = ((logits.astype(np.float64) - logits.max()) / temperature).astype(np.float32)
    return scaled


def keep_top_k(logits: np.ndarray, k: int | None) -> np.ndarray:
    """Keep exactly the k largest: ties go to the lower id."""
    return logits if k is None or k >= len(logits) else keep_largest(logits, k)


def keep_top_p(logits: np.ndarray, p: float | None) -> np.ndarray:
    """Keep the fewest of the largest that hold probability p, at least one: ties go to the lower id."""
    if p is None or p == 1:
        return logits
    least, count = likely_edge(logits, p) or sorted_edge(logits, p)
    return keep_from(logits, least, count)


def sorted_edge(logits: np.ndarray, p: float) -> tuple[np.float32, int]:
    """Return the smallest logit that top-p keeps, and how many it keeps, by the arithmetic of transformers."""
    ascending = np.full_like(logits, -math.inf)
    finite = np.sort(logits[logits > -math.inf])
    ascending[len(logits) - len(finite) :] = finite
    cumulative = softmax(ascending).cumsum(dim=0).numpy()
    removed = min(int(cumulative.searchsorted(np.float32(1 - p), side="right")), len(logits) - 1)
    return ascending[removed], len(logits) - removed


def likely_edge(logits: np.ndarray, p: float) -> tuple[np.float32, int] | None:
    """Return the result of `sorted_edge` from exact sums over the LIKELY largest alone.

    None where the edge lies beyond them, or so close to p that rounding in `sorted_edge` decides. Its softmax adds all
    tokens in float32, in ascending order and SUM_LANES sums; an addition is off by at most 2^-24 of the sum so far.
    """
    n_others = len(logits) - LIKELY
    if n_others < LIKELY:
        return None
    descending = np.sort(np.partition(logits, n_others)[n_others:])[::-1]
    total = np.exp(logits - descending[0]).sum(dtype=np.float64)
    cumulative = np.exp(descending - descending[0]).cumsum(dtype=np.float64) / total
    below = 1 - cumulative  # probability of the tokens after each
    error = 2**-24 * (below.sum() + below[-1] * n_others / 2) / SUM_LANES + OTHER_ERRORS
    first, last = cumulative.searchsorted((p - error, p + error)).tolist()
    return (descending[first], first + 1) if first == last < LIKELY else None


def keep_min_p(logits: np.ndarray, p: float | None) -> np.ndarray:
    """Keep tokens whose probability is at least p times the largest."""
    if p is None or p == 0:
        return logits
    probs = softmax(logits).numpy()
    return np.where(probs < np.float32(p) * probs.max(), np.float32(-math.inf), logits)


# Name of the setting and function of each stage after the repetition penalty, which alone needs the previous ids.
STAGES = (
    ("temperature", apply_temperature),
    ("top_k", keep_top_k),
    ("top_p", keep_top_p),
    ("min_p", keep_min_p),
)


def keep_largest(logits: np.ndarray, count: int) -> np.ndarray:
    """Set all but the `count` largest to -inf: ties go to the lower id."""
    return keep_from(logits, np.partition(logits, -count)[-count], count)


def keep_from(logits: np.ndarray, least: np.float32, count: int) -> np.ndarray:
    """Keep the `count` largest, of which `least` is the smallest: ties go to the lower id."""
    kept = torch.threshold(torch.from_numpy(logits), float(least), -math.inf).numpy()  # values above `least`
    tied = np.flatnonzero(logits == least)[: count - np.count_nonzero(logits > least)]
    kept[tied] = logits[tied]
    return kept


def top_ids(values: np.ndarray, count: int) -> np.ndarray:
    """Indices of the `count` largest of values (n,), in descending order, ties by lower index."""
    if count < len(values):
        least = torch.from_numpy(values).topk(count, sorted=False).values.min().item()
        ids = np.flatnonzero(values >= least)  # more than count only with ties
    else:
        ids = np.arange(len(values))
    return ids[np.argsort(-values[ids], kind="stable")[:count]]


def softmax(logits: np.ndarray) -> Tensor:
    """Softmax over the last dimension, as a tensor of the same dtype."""
    return torch.from_numpy(logits).softmax(dim=-1)
