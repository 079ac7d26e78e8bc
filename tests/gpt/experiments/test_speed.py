"""The cost of a token with and without cache and with both kernels, compared with torch's counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from gpt.cache import KVCache
from gpt.config import GPTConfig
from gpt.experiments.shapes import cache_numbers
from gpt.experiments.speed import generation_passes, next_token_cost
from gpt.model import GPT
from gpt.trace import Trace

IDS = [5, 1, 60, 8, 8, 30, 2]


def filled_cache(model: GPT, idx: torch.Tensor) -> KVCache:
    cache = KVCache(model.config)
    model.hidden_states(idx[:, :-1], cache=cache)
    return cache


@pytest.mark.parametrize("cached", [True, False])
@torch.inference_mode()
def test_multiplications_are_those_that_torch_counts(model: GPT, cached: bool) -> None:
    idx = torch.tensor([IDS])
    cache = filled_cache(model, idx) if cached else None
    with FlopCounterMode(display=False) as counter:
        model.lm_head(model.hidden_states(idx[:, -1:] if cached else idx, cache=cache, trace=Trace())[:, -1])
    cost = next_token_cost(model.config, len(IDS), cached=cached)
    assert 2 * cost.multiplications == counter.get_total_flops()  # one addition per multiplication


def test_without_a_cache_every_token_is_read_again() -> None:
    config = GPTConfig(n_layer=2, n_head=2, n_embd=8, vocab_size=10, block_size=16)
    head = 8 * 10
    for length in (1, 5, 16):
        once = next_token_cost(config, length, cached=True).multiplications - head
        again = next_token_cost(config, length, cached=False).multiplications - head
        assert again == length * once


def test_memory_of_the_cache_and_of_the_weights(model: GPT) -> None:
    config = model.config
    cache = KVCache(config)
    cache.reserve(config.block_size)
    assert cache.k.nbytes + cache.v.nbytes == 4 * cache_numbers(config) * config.block_size
    assert 4 * cache_numbers(GPTConfig()) == 73_728  # 2 x 12 layers x 768 numbers of 4 bytes
    cost = next_token_cost(config, 7, cached=True, kernel="eager", number_bytes=2)
    assert (cost.cache_bytes, cost.weight_bytes) == (7 * 2 * cache_numbers(config), config.n_head * 7 * 2)
    cost = next_token_cost(config, 7, cached=False, kernel="eager")
    assert (cost.cache_bytes, cost.weight_bytes) == (0, config.n_head * 7 * 7 * 4)
    assert next_token_cost(config, 7, cached=False, kernel="sdpa").weight_bytes == 0


@pytest.mark.parametrize("cached", [True, False])
def test_passes_of_a_generation_are_those_of_transformers(
    twins: Callable[..., tuple[Any, GPT]], monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    reference, ours = twins(vocab_size=61, n_positions=16, n_layer=3, n_head=3, n_embd=24)
    found: list[tuple[int, int, int]] = []
    forward = reference.transformer.forward

    def counted(input_ids: torch.Tensor, **others: Any) -> Any:
        # transformers 5.24 renamed past_key_values to cache.
        cache = others.get("cache", others.get("past_key_values"))
        n_cached = 0 if cache is None else cache.get_seq_length()
        filled = cache.layers if n_cached else []
        found.append((input_ids.shape[1], n_cached, sum(layer.keys.nbytes + layer.values.nbytes for layer in filled)))
        return forward(input_ids, **others)

    monkeypatch.setattr(reference.transformer, "forward", counted)
    reference.generation_config.eos_token_id = None
    reference.generate(torch.tensor([IDS]), max_new_tokens=6, do_sample=False, use_cache=cached)
    passes = generation_passes(ours.config, len(IDS), len(IDS) + 5, cached=cached)
    assert [(each.n_computed, each.n_cached, each.cache_bytes) for each in passes] == found
    assert sum(each.n_computed for each in passes) == (12 if cached else 7 + 8 + 9 + 10 + 11 + 12)
