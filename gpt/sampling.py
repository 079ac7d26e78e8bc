"""Choose a token from logits: pure functions over the whole vocabulary, then one reproducible draw.

The stages follow the order and arithmetic of transformers' logits processors (`generation/logits_process.py`):
repetition penalty, temperature, top-k, top-p, min-p. llama.cpp and mlx-lm apply the temperature last, which keeps fewer
tokens above a temperature of 1 and more below it. The draw inverts the cumulative distribution at a uniform number
that depends only on the seed and the position.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from gpt.errors import GPTError, check_above, check_integer, check_number, check_token_id, is_number

SMALLEST = np.float32(200)  # e to the power of -200 is 0 in float32


@dataclass(frozen=True)
class SamplingParams:
    """Settings for the sampling stages, and the seed. None disables a stage.

    temperature: divides the logits; above 1 flattens the distribution, below 1 sharpens it, 0 is greedy.
    top_k: keeps the k most likely tokens; 0 becomes None.
    top_p: keeps the smallest set of the most likely tokens whose total probability reaches this value (arXiv
        1904.09751).
    min_p: keeps tokens whose probability is at least this fraction of the largest (arXiv 2407.01082).
    repetition_penalty: above 1 lowers the logits of tokens that have occurred before (arXiv 1909.05858).
    seed: determines every draw; None chooses a random seed.
    temperature_last: applies the temperature after top-k, top-p and min-p, which then see the distribution at 1.
    repetition_window: penalises only tokens among this many at the end of the text; None penalises all of its tokens.

    Raises ValueError if a setting is out of range; the message names the value and the limit.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    temperature_last: bool = field(default=False, kw_only=True)
    repetition_window: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature, 0)
        for name, low in (("top_k", 0), ("seed", 0), ("repetition_window", 1)):
            if (value := getattr(self, name)) is not None:
                check_integer(name, value, low)
        object.__setattr__(self, "top_k", self.top_k or None)
        if self.top_p is not None and not (is_number(self.top_p) and 0 < self.top_p <= 1):
            raise GPTError("sampling.top_p", value=self.top_p)
        if self.min_p is not None:
            check_number("min_p", self.min_p, 0, 1)
        if self.repetition_penalty is not None:
            check_above("repetition_penalty", self.repetition_penalty, 0)

    def given(self) -> dict[str, Any]:
        """Return the settings that are on, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None and value is not False}


def with_seed(params: SamplingParams) -> SamplingParams:
    """Return the settings, with a random seed if seed is None."""
    return params if params.seed is not None else replace(params, seed=secrets.randbelow(2**31))


StageName = Literal["repetition_penalty", "temperature", "top_k", "top_p", "min_p", "final"]


@dataclass(frozen=True)
class Stages:
    """Next-token distribution after each stage: float32 on the CPU, (vocab_size,), summing to 1.

    A stage that is off equals the previous one, and `final` equals the last stage; see `stage_order`.

    Attributes:
        kept: (vocab_size,), True for tokens that no stage has removed.
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
    """Return the next-token distribution after each stage.

    Args:
        logits: (vocab_size,); a token with -inf is never drawn.
        params: Settings for the stages.
        previous_ids: Token ids to penalise; repeated ids count once.

    Raises:
        ValueError: If logits contain +inf or NaN or are all -inf, or an id is outside the vocabulary.
    """
    rows = stage_logits(check_logits(logits), params, previous_ids)
    probs = [softmax(rows[0])]
    for before, after in pairwise(rows):
        probs.append(probs[-1] if after is before else softmax(after))
    after_stages = dict(zip(("raw", *stage_order(params), "final"), [*probs, probs[-1]], strict=True))
    kept = torch.from_numpy(rows[-1] > -math.inf)
    return Stages(**after_stages, kept=kept, entropy=entropy_bits(probs[-1].double()).item())


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
    rows = [torch.from_numpy(row) for row in stage_logits(check_logits(logits), params, previous_ids)]
    pairs = [*pairwise(rows), (rows[0], rows[-1])]
    stages = []
    for name, (before, after) in zip((*stage_order(params), "final"), pairs, strict=True):
        p, p_after = before.double().softmax(dim=0), after.double().softmax(dim=0)
        kept = after > -math.inf
        removed = ~kept & (before > -math.inf)
        mass, *entropies = p[removed].sum().item(), entropy_bits(p).item(), entropy_bits(p_after).item()
        stages.append(SamplingStage(name, after, int(kept.sum()), int(removed.sum()), mass, *entropies))
    return stages


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


def keep_only(logits: Tensor, ids: Sequence[int]) -> Tensor:
    """Set the logits (..., vocab_size) of all other tokens to -inf. [] keeps all tokens."""
    if len(ids) == 0:
        return logits
    index = torch.tensor(ids, device=logits.device)
    return torch.full_like(logits, -math.inf).index_copy(-1, index, logits[..., index])


def entropy_bits(p: Tensor) -> Tensor:
    """Return the entropy -sum p log2 p over the last dimension, in bits: (..., V) -> (...)."""
    return torch.special.entr(p).sum(dim=-1) / math.log(2)


def rank_of(logits: Tensor, ids: Tensor) -> Tensor:
    """Return the rank of one id per row, 1 for the largest logit; ties share a rank: (..., V), (..., 1) -> (...)."""
    return 1 + (logits > logits.gather(-1, ids)).count_nonzero(dim=-1)


class Draw(NamedTuple):
    """A drawn token: its probability, its rank (1 is best) and the entropy in bits in the raw softmax, and u."""

    token_id: int
    probability: float
    rank: int
    entropy: float
    u: float


def sample(logits: Tensor, params: SamplingParams, *, position: int, previous_ids: Sequence[int] = ()) -> Draw:
    """Draw the token for a position from the logits that predict it, (vocab_size,). params: must have a seed."""
    assert params.seed is not None  # see with_seed
    u, raw = uniform_draw(params.seed, position), check_logits(logits)
    if params.temperature == 0:
        token_id = int(penalised(raw, params, previous_ids).argmax())
    else:
        token_id = inverse_cdf(softmax(stage_logits(raw, params, previous_ids)[-1]), u)
    below = np.maximum(raw - raw.max(), -SMALLEST)  # not -inf, whose product with 0 is NaN
    odds = np.exp(below)
    total = odds.sum(dtype=np.float64)
    entropy = (math.log(total) - float(odds @ below) / total) / math.log(2)
    rank = 1 + int(np.count_nonzero(raw > raw[token_id]))
    return Draw(token_id, float(odds[token_id] / total), rank, entropy, u)


def uniform_draw(seed: int, position: int) -> float:
    """Return a number in [0, 1) for a seed and a position: 53 bits of a hash, identical on every machine."""
    digest = hashlib.blake2b(f"{seed:x}:{position:x}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


def inverse_cdf(final: Tensor, u: float) -> int:
    """Return the first token, by descending probability, whose cumulative probability exceeds u in [0, 1).

    final: (vocab_size,) probabilities. Ties are ordered by id, sums are float64, and tokens of probability 0 are never
    drawn.
    """
    if not 0 <= u < 1:
        raise GPTError("argument.below_one", name="u", value=u)
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


def stage_logits(raw: np.ndarray, params: SamplingParams, previous_ids: Sequence[int] = ()) -> list[np.ndarray]:
    """Return the logits before and after each stage, (vocab_size,) float32, without copies for stages that are off.

    This uses NumPy because its overhead per call is a third of torch's.
    """
    rows = [raw, penalised(raw, params, previous_ids)]
    for name in stage_order(params)[1:]:
        rows.append(STAGES[name](rows[-1], getattr(params, name)))
    return rows


def stage_order(params: SamplingParams) -> tuple[StageName, ...]:
    """Return the names of all stages but "final" in the order in which they are applied."""
    penalty, temperature, *filters, _ = get_args(StageName)
    return (penalty, *filters, temperature) if params.temperature_last else (penalty, temperature, *filters)


def check_logits(logits: Tensor) -> np.ndarray:
    """Convert logits (vocab_size,) to float32 on the CPU.

    Raises ValueError if they have another shape, contain +inf or NaN, or are all -inf.
    """
    if logits.dim() != 1 or len(logits) == 0:
        raise GPTError("sampling.logits_shape", shape=tuple(logits.shape))
    raw = logits.detach().to("cpu", torch.float32).numpy()
    if not np.isfinite(raw.max()):
        raise GPTError("sampling.logits_not_finite")
    return raw


def penalised(logits: np.ndarray, params: SamplingParams, previous_ids: Sequence[int]) -> np.ndarray:
    """Divide the positive logits of the ids in the window by the penalty, and multiply the negative ones by it."""
    penalty, window = params.repetition_penalty, params.repetition_window
    if penalty is None or len(previous_ids) == 0:
        return logits
    ids = np.asarray(previous_ids if window is None else previous_ids[-window:])
    for token_id in (ids.min(), ids.max()):
        check_token_id(token_id, len(logits))
    penalised = logits.copy()
    with np.errstate(all="ignore"):
        previous, factor = logits[ids], np.float32(penalty)
        penalised[ids] = np.where(previous < 0, previous * factor, previous / factor)
    if not np.isfinite(penalised.max()):
        raise GPTError("sampling.penalty_overflow", value=penalty)
    return penalised


def apply_temperature(logits: np.ndarray, temperature: float) -> np.ndarray:
    """Divide the logits by the temperature; at 0, keep only the largest. Ties go to the lowest id."""
    if temperature == 1:
        return logits
    if temperature == 0:
        return keep_top_k(logits, 1)
    with np.errstate(all="ignore"):
        scaled = logits / np.float32(temperature)
        if not np.isfinite(scaled.max()):  # overflow in float32: subtract the maximum first
            scaled = ((logits.astype(np.float64) - logits.max()) / temperature).astype(np.float32)
    return scaled


def keep_top_k(logits: np.ndarray, k: int | None) -> np.ndarray:
    """Keep exactly the k largest logits. Ties go to the lower id."""
    return logits if k is None or k >= len(logits) else keep_from(logits, np.partition(logits, -k)[-k], k)


def keep_top_p(logits: np.ndarray, p: float | None) -> np.ndarray:
    """Keep the smallest set of top logits whose total probability reaches p. Ties go to the lower id.

    The sums are those of transformers: in float32, from the least likely token upwards.
    """
    if p is None or p == 1:
        return logits
    finite = np.sort(logits[logits > -math.inf])  # few after top-k
    ascending = np.concatenate([np.full(len(logits) - len(finite), -math.inf, logits.dtype), finite])
    cumulative = softmax(ascending).cumsum(dim=0).numpy()
    removed = min(int(cumulative.searchsorted(np.float32(1 - p), side="right")), len(logits) - 1)
    return keep_from(logits, ascending[removed], len(logits) - removed)


def keep_min_p(logits: np.ndarray, p: float | None) -> np.ndarray:
    """Keep tokens with at least p times the probability of the most likely token."""
    if p is None or p == 0:
        return logits
    probs = softmax(logits).numpy()
    return np.where(probs < np.float32(p) * probs.max(), np.float32(-math.inf), logits)


# Setting and function for each stage. The repetition penalty is omitted because it also needs the previous ids.
STAGES = {"temperature": apply_temperature, "top_k": keep_top_k, "top_p": keep_top_p, "min_p": keep_min_p}


def keep_from(logits: np.ndarray, least: np.float32, count: int) -> np.ndarray:
    """Keep the `count` largest logits; `least` is the smallest of them. Ties go to the lower id."""
    kept = np.where(logits > least, logits, np.float32(-math.inf))
    tied = np.flatnonzero(logits == least)[: count - np.count_nonzero(logits > least)]
    kept[tied] = logits[tied]
    return kept


def top_ids(values: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of the `count` largest values (n,), in descending order. Ties go to the lower index."""
    if count < len(values):
        least = torch.from_numpy(values).topk(count, sorted=False).values.min().item()
        ids = np.flatnonzero(values >= least)  # more than `count` if there are ties
    else:
        ids = np.arange(len(values))
    return ids[np.argsort(-values[ids], kind="stable")[:count]]


def softmax(logits: np.ndarray) -> Tensor:
    return torch.from_numpy(logits).softmax(dim=-1)
