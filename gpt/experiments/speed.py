"""The cost of generating tokens with and without a KV cache, counted for each pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpt.config import GPTConfig
from gpt.experiments.shapes import cache_numbers, flops_per_token

Kernel = Literal["sdpa", "eager"]


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


def next_token_cost(
    config: GPTConfig, length: int, *, cached: bool, kernel: Kernel = "sdpa", number_bytes: int = 4
) -> Cost:
    """Count the cost of predicting the token that follows `length` tokens.

    With a cache, the pass reads one token, which attends to all tokens. Without a cache, it reads all tokens, and each
    attends to all. The head runs only for the last token.
    """
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
    every pass reads the whole text so far.
    """
    passes = []
    for end in range(n_prompt, length + 1):
        n_cached = end - 1 if cached and end > n_prompt else 0
        cost = next_token_cost(config, end, cached=n_cached > 0)
        n_bytes = cache_numbers(config) * number_bytes * n_cached
        passes.append(GenerationPass(end - n_cached, n_cached, n_bytes, cost.multiplications))
    return passes
