"""Texts that are read in one pass, and the memory of their copies."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
import torch

from gpt import GPT, Edits, GPTConfig, KVCache
from gpt.edits import Steering
from gpt.inference import batched_decode
from gpt.inference.batched_decode import MAX_ROWS, DecodeCache, batched_hidden_states, can_batch
from gpt.inference.packed_weights import pack

CONFIGS = {
    "gpt2": {},
    "three heads of odd width": {"n_head": 3, "n_embd": 33},
    "one head": {"n_head": 1},
    "no bias": {"bias": False},
    "no query bias": {"qkv_bias": False},
    "untied": {"tie_weights": False},
    "rotary": {"position": "rotary"},
    "one layer without rotation": {"position": "rotary", "unrotated_layers": (1,)},
    "capped scores": {"attn_softcap": 0.5, "attn_scale": 3.0, "n_kv_head": 1},
    "norms of all heads, and after the branches": {"qk_norm": "full", "pre_norm": False, "post_norm": True},
    "relu": {"activation": "relu"},
    "exact gelu": {"activation": "gelu"},
    "silu, narrow": {"activation": "silu", "n_ff": 20},
}

CLOSE = {"atol": 1e-5, "rtol": 0}

QUICK = {("gpt2", False), ("capped scores", True)}

CASES = [
    pytest.param((name, packed), marks=() if (name, packed) in QUICK else pytest.mark.thorough)
    for name in CONFIGS
    for packed in (False, True)
]


@pytest.fixture(params=CASES, ids=str)
def model(request):
    torch.manual_seed(5)
    name, packed = request.param
    config = GPTConfig(**{"vocab_size": 40, "block_size": 12, "n_layer": 2, "n_head": 2, "n_embd": 32, **CONFIGS[name]})
    model = GPT(config).eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)  # including norms and biases
    if packed:
        pack(model, "fp32")
    return model


def same_content(cache, other, length):
    pairs = [(cache.k, other.k), (cache.v, other.v), (cache.q, other.q)]
    return all(
        kept is None or torch.allclose(kept[:, :, :, :length], same[:, :, :, :length], **CLOSE) for kept, same in pairs
    )


@torch.inference_mode()
def test_texts_of_different_lengths_read_together_equal_the_model_on_each(model):
    texts = [torch.randint(40, (1, n)) for n in (1, 4, 11, 7)]
    caches = [KVCache(model.config, keep_queries=n != 4) for n in (1, 4, 11, 7)]
    starts = [0, 3, 10, 2]
    for text, cache, start in zip(texts, caches, starts, strict=True):
        if start:
            model(text[:, :start], cache=cache)
    unread = [text[0, start:].tolist() for text, start in zip(texts, starts, strict=True)]
    for states, text, cache, start in zip(
        batched_hidden_states(model, unread, caches, DecodeCache()), texts, caches, starts, strict=True
    ):
        whole = KVCache(model.config, keep_queries=cache.q is not None)
        assert torch.allclose(states, model.hidden_states(text, cache=whole)[0, start:], **CLOSE)
        assert cache.length == text.shape[1]
        assert same_content(cache, whole, cache.length)


@torch.inference_mode()
def test_each_text_has_its_own_steering(model):
    """Steer five texts differently, on prompts and on single tokens.

    Two have a constant vector, a third has one that depends on the stream, a fourth has both. The fifth has the third's
    vector without the dependence, which gives the same result.
    """
    width = model.config.n_embd
    plain = Steering(0, torch.randn(width, generator=torch.Generator().manual_seed(1)))
    removed = Steering(
        0, torch.randn(width, generator=torch.Generator().manual_seed(2)), None, lambda x: x[..., 3].relu()
    )
    later = Steering(1, torch.randn(width, generator=torch.Generator().manual_seed(3)))
    always = Steering(0, removed.value)
    vectors = [(plain,), (), (removed,), (removed, later, plain), (plain,), (always,)]
    edits = [Edits(steering=each) if each else None for each in vectors]
    caches = [KVCache(model.config) for _ in edits]
    texts = [torch.randint(40, (1, n)) for n in (5, 4, 6, 3, 1, 5)]
    shared = DecodeCache()
    for start, stop in ((0, -3), (-3, -2), (-2, None)):
        unread = [text[0, start:stop] for text in texts]
        parts = [(i, ids.tolist()) for i, ids in enumerate(unread) if len(ids)]
        found = batched_hidden_states(
            model, [ids for _, ids in parts], [caches[i] for i, _ in parts], shared, [edits[i] for i, _ in parts]
        )
        for (i, ids), states in zip(parts, found, strict=True):
            read = texts[i][:, : caches[i].length]
            expected = model.hidden_states(read, edits=edits[i])[0, -len(ids) :]
            assert torch.allclose(states, expected, **CLOSE)
    assert [cache.length for cache in caches] == [text.shape[1] for text in texts]


@torch.inference_mode()
def test_texts_that_join_pause_leave_and_go_back_keep_their_content(model, monkeypatch):
    """Run random rounds on one DecodeCache with blocks of 4, 8 and 12 positions. Before each, a text may go back."""
    monkeypatch.setattr(batched_decode, "SHORT_TEXT", 4)
    monkeypatch.setattr(batched_decode, "FILL_POSITIONS", 3)
    random, shared = Random(3), DecodeCache()
    texts: list[list[int]] = [[] for _ in range(7)]
    caches = [KVCache(model.config, keep_queries=True) for _ in texts]
    for _ in range(12):
        chosen = random.sample(range(7), random.choice([1, 2, 3, 5, 7]))
        new = [[random.randrange(40) for _ in range(random.choice([1, 1, 1, 3]))] for _ in chosen]
        for i, ids in zip(chosen, new, strict=True):
            if len(texts[i]) + len(ids) > model.config.block_size or random.random() < 0.2:
                keep = random.randrange(min(len(texts[i]), 9) + 1)
                caches[i].crop(keep)
                del texts[i][keep:]
            texts[i] += ids
        states = batched_hidden_states(model, new, [caches[i] for i in chosen], shared)
        for i, ids, state in zip(chosen, new, states, strict=True):
            whole = KVCache(model.config, keep_queries=True)
            expected = model.hidden_states(torch.tensor([texts[i]]), cache=whole)[0, -len(ids) :]
            assert torch.allclose(state, expected, **CLOSE)
            assert same_content(caches[i], whole, len(texts[i]))
        if random.random() < 0.3:
            shared.trim()


def test_only_the_plain_model_in_evaluation_mode_is_batched(model):
    assert can_batch(model)
    model.training = True  # packed weights refuse model.train()
    assert not can_batch(model)
    model.eval().h[0] = torch.nn.Identity()
    assert not can_batch(model)


CONFIG = GPTConfig(vocab_size=40, block_size=1024, n_layer=2, n_head=2, n_embd=16)

POSITION_BYTES = 2 * CONFIG.n_layer * CONFIG.n_embd * 4  # keys and values


def text_of(wide: GPT, length: int) -> KVCache:
    """Return the cache of a text of this length."""
    cache = KVCache(wide.config)
    cache.kv.zero_()  # commits all of its memory, so that reading on takes none
    batched_hidden_states(wide, [[1] * length], [cache], DecodeCache())
    return cache


def read_next(wide: GPT, texts: Sequence[KVCache], shared: DecodeCache) -> None:
    """Read one token of each text in a single pass."""
    batched_hidden_states(wide, [[2]] * len(texts), texts, shared)


@pytest.fixture(scope="module")
def wide() -> GPT:
    return GPT(CONFIG, generator=torch.Generator().manual_seed(0)).eval()


def test_copies_are_limited_to_32_texts_and_the_context(wide: GPT) -> None:
    texts, shared = [text_of(wide, 6) for _ in range(MAX_ROWS + 2)], DecodeCache()
    read_next(wide, texts, shared)
    assert shared.n_bytes == MAX_ROWS * 64 * POSITION_BYTES
    full, shared = [text_of(wide, 1023) for _ in range(2)], DecodeCache()
    read_next(wide, full, shared)
    assert shared.n_bytes == 2 * 1024 * POSITION_BYTES


def test_memory_of_texts_that_ended_is_returned_and_the_others_go_on(wide: GPT) -> None:
    texts, shared = [text_of(wide, 300) for _ in range(8)], DecodeCache()
    read_next(wide, texts, shared)
    assert shared.n_bytes == 8 * 320 * POSITION_BYTES
    shared.trim()
    assert shared.n_bytes == 0
    read_next(wide, texts[:2], shared)
    assert shared.n_bytes == 2 * 320 * POSITION_BYTES


def test_texts_without_room_attend_in_their_own_caches(wide: GPT) -> None:
    texts, alone, shared = [text_of(wide, 6) for _ in range(5)], text_of(wide, 6), DecodeCache()
    shared.free_bytes = lambda: 3 * 256 * POSITION_BYTES - shared.n_bytes
    expected = batched_hidden_states(wide, [[2]], [alone], DecodeCache())[0]
    for state in batched_hidden_states(wide, [[2]] * 5, texts, shared):
        torch.testing.assert_close(state, expected, atol=1e-5, rtol=0)
    assert shared.n_bytes == 3 * 64 * POSITION_BYTES
