"""The cost of a token with and without cache and with both kernels, compared with torch's counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from gpt.cache import KVCache
from gpt.config import GPTConfig
from gpt.experiments import speed
from gpt.experiments.shapes import cache_numbers, flops_per_token
from gpt.experiments.speed import generation_passes, measure_layers, measure_speed, next_token_cost, timed_token
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
        timed_token(model, idx, cache, "eager")
    cost = next_token_cost(model.config, len(IDS), cached=cached)
    assert 2 * cost.multiplications == counter.get_total_flops()  # one addition per multiplication


def test_with_a_cache_the_count_is_that_of_the_shape() -> None:
    for config in (GPTConfig(), GPTConfig(n_layer=3, n_head=2, n_embd=20, n_ff=50, vocab_size=99)):
        for length in (1, 10, 1024):
            expected = flops_per_token(config, length - 1).total
            assert 2 * next_token_cost(config, length, cached=True).multiplications == expected


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
    assert cache.k.nbytes + cache.v.nbytes == 4 * cache_numbers(config) * config.block_size
    assert 4 * cache_numbers(GPTConfig()) == 73_728  # 2 x 12 layers x 768 numbers of 4 bytes
    cost = next_token_cost(config, 7, cached=True, kernel="eager", number_bytes=2)
    assert (cost.cache_bytes, cost.weight_bytes) == (7 * 2 * cache_numbers(config), config.n_head * 7 * 2)
    cost = next_token_cost(config, 7, cached=False, kernel="eager")
    assert (cost.cache_bytes, cost.weight_bytes) == (0, config.n_head * 7 * 7 * 4)
    assert next_token_cost(config, 7, cached=False, kernel="sdpa").weight_bytes == 0


@torch.inference_mode()
def test_cache_and_kernel_do_not_change_the_logits(model: GPT) -> None:
    idx = torch.tensor([IDS])
    expected = model(idx)[0, -1]
    for kernel in ("sdpa", "eager"):
        cache = filled_cache(model, idx)
        assert_close(timed_token(model, idx, None, kernel)[0], expected, atol=1e-5, rtol=0)
        assert_close(timed_token(model, idx, cache, kernel)[0], expected, atol=1e-5, rtol=0)
        assert cache.length == len(IDS) - 1


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


@torch.inference_mode()
def test_multiplications_of_prefill_and_decode_are_those_that_torch_counts(model: GPT) -> None:
    cache, idx = KVCache(model.config), torch.tensor([IDS])
    prefill, decode = generation_passes(model.config, len(IDS) - 1, len(IDS), cached=True)
    for expected, new in ((prefill, idx[:, :-1]), (decode, idx[:, -1:])):
        with FlopCounterMode(display=False) as counter:
            model.lm_head(model.hidden_states(new, cache=cache, trace=Trace())[:, -1])  # eager, so that torch counts it
        assert 2 * expected.multiplications == counter.get_total_flops()


def test_each_length_is_measured_with_and_without_cache_in_both_kernels(model: GPT) -> None:
    rows = list(measure_speed(model, IDS, [16, 1, 9], repeats=2))
    ways = [(cached, kernel) for cached in (True, False) for kernel in ("sdpa", "eager")]
    assert [(r.cost.length, r.cost.cached, r.cost.kernel) for r in rows] == [
        (length, *way) for length in (1, 9, 16) for way in ways
    ]
    for row in rows:
        assert row.seconds > 0
        assert row.tokens_per_second == 1 / row.seconds
        assert row.cost == next_token_cost(
            model.config, row.cost.length, cached=row.cost.cached, kernel=row.cost.kernel
        )


def test_lengths_beyond_the_context_and_empty_texts_are_refused(model: GPT) -> None:
    for length in (0, 17):
        with pytest.raises(ValueError, match=rf"length must be a whole number between 1 and 16, not {length}"):
            next(measure_speed(model, IDS, [length]))
        with pytest.raises(ValueError, match=rf"length must be a whole number between 1 and 16, not {length}"):
            generation_passes(model.config, 1, length, cached=True)
    with pytest.raises(ValueError, match="n_prompt must be a whole number between 1 and 7, not 8"):
        generation_passes(model.config, 8, 7, cached=True)
    with pytest.raises(ValueError, match="the text is empty"):
        next(measure_speed(model, [], [1]))


def test_each_part_has_the_time_of_its_modules(model: GPT, monkeypatch: pytest.MonkeyPatch) -> None:
    now, n_heads = 0.0, []

    def takes(module: object, seconds: float) -> None:
        def advance(*_: object) -> None:
            nonlocal now
            now += seconds

        module.register_forward_hook(advance)  # type: ignore[attr-defined]

    monkeypatch.setattr(speed, "perf_counter", lambda: now)
    takes(model.wte, 5)
    for number, block in enumerate(model.blocks, 1):
        takes(block.ln_1, 0.25)
        takes(block.attn, 10 * number)
        takes(block.ln_2, 0.5)
        takes(block.mlp, 100 * number)
    takes(model.ln_f, 0.125)
    takes(model.lm_head, 1000)
    model.lm_head.register_forward_hook(lambda _, args, out: n_heads.append(args[0].shape))
    found = list(measure_layers(model, [5, 1, 60, 8], 2))
    assert len(found) == 2
    for times in found:
        assert times.embedding == 5
        assert times.attention == (10.25, 20.25, 30.25)
        assert times.feed_forward == (100.5, 200.5, 300.5)
        assert times.head == 1000.125
        assert times.total == sum((5, 60.75, 601.5, 1000.125))
    assert n_heads == [(1, 24)] * 3  # only the last token, in one warm-up pass and two timed ones


def test_an_empty_text_and_one_beyond_the_context_are_refused(model: GPT) -> None:
    with pytest.raises(ValueError, match="the text is empty"):
        next(measure_layers(model, [], 1))
    with pytest.raises(ValueError, match="17"):
        next(measure_layers(model, [1] * 17, 1))
