"""What the KV cache and the attention kernel save: counted exactly, and measured on this computer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import torch
from torch import Tensor

from gpt.cache import KVCache
from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.experiments.shapes import cache_numbers
from gpt.model import GPT
from gpt.trace import Trace

Kernel = Literal["sdpa", "open"]


@dataclass(frozen=True)
class Cost:
    """What the next token costs when a text has this many tokens.

    multiplications: in all products of matrices, the ones that the mask throws away included.
    cache_bytes: memory that keys and values of the text take, 0 without a cache.
    weight_bytes: memory of the attention weights of one layer; the fused kernel ("sdpa") never writes them.
    """

    length: int
    cached: bool
    kernel: Kernel
    multiplications: int
    cache_bytes: int
    weight_bytes: int


@dataclass(frozen=True)
class SpeedRow:
    """A cost, and the seconds that it took: the median of the measurements."""

    cost: Cost
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        """Of this one token."""
        return 1 / self.seconds


def next_token_cost(
    config: GPTConfig, length: int, *, cached: bool, kernel: Kernel = "sdpa", number_bytes: int = 4
) -> Cost:
    """Count what it takes to predict the token after `length` others.

    With a cache one token is read and looks at all; without, all of them are read again. In every block
    C (4 C + 2 n_ff) multiplications for each token that is read and 2 C for each pair of a reader and a token that
    it is compared with; C vocab_size in the head, for the last token alone. Raises ValueError for a length outside
    of the context.
    """
    check_length(config, length)
    width = config.n_embd
    T = 1 if cached else length  # tokens that are read
    per_block = T * width * (4 * width + 2 * config.ff_size) + 2 * T * length * width
    return Cost(
        length=length,
        cached=cached,
        kernel=kernel,
        multiplications=config.n_layer * per_block + width * config.vocab_size,
        cache_bytes=cache_numbers(config) * number_bytes * length if cached else 0,
        weight_bytes=config.n_head * T * length * number_bytes if kernel == "open" else 0,
    )


def bytes_per_token(config: GPTConfig, number_bytes: int = 4) -> int:
    """Memory that a KV cache takes for each token of the text."""
    return cache_numbers(config) * number_bytes


@torch.inference_mode()
def measure_speed(model: GPT, ids: Sequence[int], lengths: Sequence[int], *, repeats: int = 3) -> Iterator[SpeedRow]:
    """Time the next token at several lengths of one text: with and without cache, with both kernels.

    Rows come as they are measured, four for each length. The text is repeated where it is too short.
    Raises ValueError for an empty text and for a length outside of the context.
    """
    if not ids:
        raise GPTError("experiment.nothing_to_measure")
    for length in lengths:
        check_length(model.config, length)
    longest = (list(ids) * (max(lengths) // len(ids) + 1))[: max(lengths)]
    text = torch.tensor([longest], device=model.device)  # (1, S)
    cache = KVCache(model.config, max_length=max(lengths), dtype=model.dtype, device=model.device)
    for length in sorted(lengths):
        idx = text[:, :length]
        for cached in (True, False):
            if cached and length - 1 > cache.length:
                model.hidden_states(idx[:, cache.length : -1], cache=cache)
            for kernel in ("sdpa", "open"):
                seconds = [timed_token(model, idx, cache if cached else None, kernel)[1] for _ in range(repeats)]
                cost = next_token_cost(
                    model.config, length, cached=cached, kernel=kernel, number_bytes=model.dtype.itemsize
                )
                yield SpeedRow(cost, median(seconds))


def timed_token(model: GPT, idx: Tensor, cache: KVCache | None, kernel: Kernel) -> tuple[Tensor, float]:
    """The logits, (vocab_size,), after a text (1, S), and the seconds they took; the cache is left as it was.

    cache: holds all but the last token of the text, at least.
    """
    trace = Trace() if kernel == "open" else None
    finish(idx.device)
    begun = time.perf_counter()
    if cache is None:
        state = model.hidden_states(idx, trace=trace)[:, -1]
    else:
        cache.crop(idx.shape[1] - 1)
        state = model.hidden_states(idx[:, -1:], cache=cache, trace=trace)[:, -1]
        cache.crop(idx.shape[1] - 1)
    logits = model.lm_head(state)[0]
    finish(idx.device)
    return logits, time.perf_counter() - begun


def finish(device: torch.device) -> None:
    """Wait until a GPU has done what it was given; other devices have by then."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def check_length(config: GPTConfig, length: int) -> None:
    """Raise ValueError for a length outside of the context."""
    if not 1 <= length <= config.block_size:
        raise GPTError("argument.range", name="length", low=1, high=config.block_size, value=length)
