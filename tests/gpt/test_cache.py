"""The key-value cache."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from gpt.cache import KVCache
from gpt.model import GPT
from gpt.trace import Trace
from tests.gpt.family_configs import FAMILIES

EXACT = {"atol": 1e-5, "rtol": 0}


def in_chunks(model, idx, lengths, *, mask=None, traced=False, cache=None):
    """Return the logits of a text read in chunks with a cache."""
    cache = KVCache(model.config, batch_size=len(idx)) if cache is None else cache
    parts = []
    for length in lengths:
        end = cache.length + length
        parts.append(
            model(
                idx[:, cache.length : end],
                attention_mask=None if mask is None else mask[:, :end],
                cache=cache,
                trace=Trace() if traced else None,
            )
        )
    assert cache.length == sum(lengths)
    return torch.cat(parts, dim=1)


PADDING = torch.ones(4, 16)
PADDING[1, :4] = 0  # left
PADDING[2, 9:] = 0  # right
PADDING[3, :15] = 0


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("mask", [None, PADDING], ids=["plain", "padded"])
@torch.inference_mode()
def test_cached_equals_uncached(model, mask, traced):
    idx = torch.randint(61, (4, 16))
    found = in_chunks(model, idx, [5, 1, 7, 3], mask=mask, traced=traced)
    assert_close(found, model(idx, attention_mask=mask), **EXACT)


@torch.inference_mode()
def test_weights_from_the_cache_are_those_of_the_trace(model):
    idx = torch.randint(61, (2, 12))
    trace, cache = Trace(), KVCache(model.config, batch_size=2, keep_queries=True)
    model(idx, trace=trace)
    in_chunks(model, idx, [4, 1, 7], cache=cache)
    for layer in range(model.config.n_layer):
        weights = trace.layers[layer].attn_weights
        assert_close(cache.attn_weights(layer), weights, atol=1e-6, rtol=0)
        rows = cache.attn_weights(layer, head=2, start=3, stop=9)
        assert_close(rows, weights[:, 2:3, 3:9, :9], atol=1e-6, rtol=0)


@torch.inference_mode()
def test_a_cropped_cache_can_be_continued_with_another_text(model):
    first, second = torch.randint(61, (1, 12)), torch.randint(61, (1, 12))
    second[:, :5] = first[:, :5]
    cache = KVCache(model.config)
    in_chunks(model, first, [12], cache=cache)
    cache.crop(5)
    assert_close(model(second[:, 5:], cache=cache), model(second)[:, 5:], **EXACT)


@torch.inference_mode()
def test_caches_that_share_memory_are_independent_once_one_is_extended(model):
    idx = torch.randint(61, (1, 12))
    cache = KVCache(model.config, keep_queries=True)
    in_chunks(model, idx[:, :7], [7], cache=cache)
    twin = cache.share()
    model(idx[:, 7:], cache=twin)
    model(idx[:, 7:] * 0, cache=cache)  # a different continuation of the first text
    assert_close(model(idx, trace=(trace := Trace()))[:, -1], model.logits(trace.final_norm[:, -1]))
    assert_close(twin.attn_weights(0), trace.layers[0].attn_weights, **EXACT)


def test_a_full_cache_refuses_the_next_token():
    model = GPT(FAMILIES["gpt2"])
    cache = KVCache(model.config, max_length=4)
    in_chunks(model, torch.zeros(1, 4, dtype=torch.long), [4], cache=cache)
    with pytest.raises(ValueError, match="5 positions do not fit in a cache of 4"):
        model(torch.zeros(1, 1, dtype=torch.long), cache=cache)
    assert cache.length == 4
    full = KVCache(model.config)
    in_chunks(model, torch.zeros(1, 16, dtype=torch.long), [16], cache=full)
    with pytest.raises(ValueError, match="17 tokens do not fit a context of 1 to 16"):
        model(torch.zeros(1, 1, dtype=torch.long), cache=full)
    for length in (0, 17):
        with pytest.raises(ValueError, match=f"max_length must be a whole number between 1 and 16, not {length}"):
            KVCache(model.config, max_length=length)
