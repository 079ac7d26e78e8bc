"""The cost of generating tokens with and without a KV cache, counted for each pass and measured for each part."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from statistics import median
from time import perf_counter
from typing import Literal

import torch
from torch import Tensor

from gpt.cache import KVCache
from gpt.checks import check_integer
from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.experiments.shapes import cache_numbers, flops_per_token
from gpt.model import GPT
from gpt.trace import Trace

Kernel = Literal["sdpa", "eager"]
KERNELS: tuple[Kernel, ...] = ("sdpa", "eager")


def check_not_empty(ids: Sequence[int]) -> None:
    """Raise ValueError for a text without tokens."""
    if not ids:
        raise GPTError("experiment.nothing_to_measure", "the text is empty: there is nothing to measure")


@dataclass(frozen=True)
class Cost:
    """Cost of predicting the token that follows `length` tokens.

    multiplications: number of multiplications in all matrix products, including those that the causal mask discards.
    cache_bytes: size of keys and values; 0 if there is no cache.
    weight_bytes: size of one layer's attention weights; 0 with "sdpa", which does not store them.
    """

    length: int
    cached: bool
    kernel: Kernel
    multiplications: int
    cache_bytes: int
    weight_bytes: int


@dataclass(frozen=True)
class SpeedRow:
    """The cost of predicting a token, and the median measured time in seconds."""

    cost: Cost
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        """Reciprocal of `seconds`."""
        return 1 / self.seconds


def next_token_cost(
    config: GPTConfig, length: int, *, cached: bool, kernel: Kernel = "sdpa", number_bytes: int = 4
) -> Cost:
    """Count the cost of predicting the token that follows `length` tokens.

    With a cache, the pass reads one token, which attends to all tokens. Without a cache, it reads all tokens, and each
    attends to all. The head runs only for the last token. Raises ValueError for a length outside the context.
    """
    check_length(config, length)
    n_read = 1 if cached else length
    head = config.n_embd * config.vocab_size
    blocks = flops_per_token(config, length - 1).total // 2 - head  # half of the FLOPs are multiplications
    return Cost(
        length=length,
        cached=cached,
        kernel=kernel,
        multiplications=n_read * blocks + head,
        cache_bytes=cache_numbers(config) * number_bytes * length if cached else 0,
        weight_bytes=config.n_head * n_read * length * number_bytes if kernel == "eager" else 0,
    )


@dataclass(frozen=True)
class GenerationPass:
    """One forward pass during generation.

    n_computed: tokens that go through the layers. n_cached: earlier tokens, whose keys and values come from the cache.
    cache_bytes: size of these keys and values in all layers. multiplications: see `Cost`.
    """

    n_computed: int
    n_cached: int
    cache_bytes: int
    multiplications: int


def generation_passes(
    config: GPTConfig, n_prompt: int, length: int, *, cached: bool, number_bytes: int = 4
) -> list[GenerationPass]:
    """Return the forward passes that extend a prompt from n_prompt to `length` tokens and then read the last token.

    The first pass reads the prompt (prefill), and every other pass reads the latest token (decode). Without a cache,
    every pass reads the whole text so far. Raises ValueError for lengths outside the context, or a prompt longer than
    the text.
    """
    check_length(config, length)
    check_integer("n_prompt", n_prompt, 1, length)
    passes = []
    for end in range(n_prompt, length + 1):
        n_cached = end - 1 if cached and end > n_prompt else 0
        cost = next_token_cost(config, end, cached=n_cached > 0)
        n_bytes = cache_numbers(config) * number_bytes * n_cached
        passes.append(GenerationPass(end - n_cached, n_cached, n_bytes, cost.multiplications))
    return passes


@torch.inference_mode()
def measure_speed(model: GPT, ids: Sequence[int], lengths: Sequence[int], *, repeats: int = 3) -> Iterator[SpeedRow]:
    """Time next-token prediction for one text at several lengths, with and without a cache and with both kernels.

    Yields four rows for each length, shortest first. Repeats the text if it is too short.
    Raises ValueError for an empty text or a length outside the context.
    """
    check_not_empty(ids)
    for length in lengths:
        check_length(model.config, length)
    longest = (list(ids) * (max(lengths) // len(ids) + 1))[: max(lengths)]
    text = torch.tensor([longest], device=model.device)  # (1, S)
    cache = KVCache(model.config, max_length=max(lengths), dtype=model.dtype, device=model.device)
    for length in sorted(lengths):
        idx = text[:, :length]
        if length - 1 > cache.length:
            model.hidden_states(idx[:, cache.length : -1], cache=cache)
        for cached, kernel in product((True, False), KERNELS):
            seconds = [timed_token(model, idx, cache if cached else None, kernel)[1] for _ in range(repeats)]
            size = model.dtype.itemsize
            cost = next_token_cost(model.config, length, cached=cached, kernel=kernel, number_bytes=size)
            yield SpeedRow(cost, median(seconds))


def timed_token(model: GPT, idx: Tensor, cache: KVCache | None, kernel: Kernel) -> tuple[Tensor, float]:
    """Compute the logits after a text (1, S). Returns the logits, (vocab_size,), and the time taken, in seconds.

    A model with capped scores uses eager attention for either kernel. cache: contains at least all tokens of the
    text except the last. Only its length changes, to S - 1.
    """
    trace = Trace() if kernel == "eager" else None
    synchronize(idx.device)
    began = time.perf_counter()
    if cache is None:
        state = model.hidden_states(idx, trace=trace)[:, -1]
    else:
        cache.crop(idx.shape[1] - 1)
        state = model.hidden_states(idx[:, -1:], cache=cache, trace=trace)[:, -1]
        cache.crop(idx.shape[1] - 1)
    logits = model.logits(state)[0]
    synchronize(idx.device)
    return logits, time.perf_counter() - began


def synchronize(device: torch.device) -> None:
    """Wait until a GPU has finished its work; other devices compute synchronously."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def check_length(config: GPTConfig, length: int) -> None:
    """Raise ValueError for a length outside the context."""
    check_integer("length", length, 1, config.block_size)


@dataclass(frozen=True)
class LayerTimes:
    """Times of the parts of one forward pass, in seconds. Together they make up the whole pass.

    embedding: token and position embeddings. attention, feed_forward: per block, including the preceding norm and the
    addition to the residual stream; n_layer numbers. head: the final norm, and the logits after the last token.
    """

    embedding: float
    attention: tuple[float, ...]
    feed_forward: tuple[float, ...]
    head: float

    @property
    def total(self) -> float:
        """Time of the whole pass."""
        return self.embedding + sum(self.attention) + sum(self.feed_forward) + self.head


@dataclass
class Clock(Trace):
    """Trace that records when each block starts, finishes attention, and ends. Stores no activations."""

    attention: bool = False
    times: list[float] = field(default_factory=list)

    def record(self, layer: int | None, name: str, value: Tensor) -> None:
        if name in ("resid_pre", "resid_mid") or (name == "resid_post" and layer == len(self.layers) - 1):
            synchronize(value.device)
            self.times.append(perf_counter())


@torch.inference_mode()
def measure_layers(model: GPT, ids: Sequence[int], repeats: int) -> Iterator[LayerTimes]:
    """Time forward passes that read a whole text and predict the next token, after a warm-up pass.

    On a GPU, this synchronises after each part, so a pass takes longer than in generation. Raises ValueError for an
    empty text, or a text longer than block_size.
    """
    check_not_empty(ids)
    idx = torch.tensor([list(ids)], device=model.device)  # (1, T)
    timed_pass(model, idx)
    for _ in range(repeats):
        yield timed_pass(model, idx)


def timed_pass(model: GPT, idx: Tensor) -> LayerTimes:
    """Return the times of one pass over a text (1, T)."""
    clock = Clock()
    synchronize(idx.device)
    began = perf_counter()
    model.logits(model.hidden_states(idx, trace=clock)[:, -1])
    synchronize(idx.device)
    marks = [began, *clock.times, perf_counter()]
    seconds = [after - before for before, after in pairwise(marks)]
    return LayerTimes(seconds[0], tuple(seconds[1:-1:2]), tuple(seconds[2:-1:2]), seconds[-1])
