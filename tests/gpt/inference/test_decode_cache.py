"""Memory of the copied keys and values with which several texts attend in one kernel."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from gpt import GPT, GPTConfig, KVCache
from gpt.inference.batched_decode import batched_hidden_states
from gpt.inference.decode_cache import MAX_ROWS, DecodeCache
from gpt.models.memory import return_free_memory

CONFIG = GPTConfig(vocab_size=40, block_size=1024, n_layer=4, n_head=4, n_embd=256)
POSITION_BYTES = 2 * CONFIG.n_layer * CONFIG.n_embd * 4  # keys and values


def resident_bytes() -> int:
    """Return this process's resident memory in bytes, after returning freed memory to the system."""
    return_free_memory()
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def text_of(model: GPT, length: int) -> KVCache:
    """Return the cache of a text of this length."""
    cache = KVCache(model.config)
    cache.kv.zero_()  # commits all of its memory, so that reading on takes none
    batched_hidden_states(model, [[1] * length], [cache], DecodeCache())
    return cache


def read_next(model: GPT, texts: Sequence[KVCache], shared: DecodeCache) -> None:
    """Read one token of each text in a single pass."""
    batched_hidden_states(model, [[2]] * len(texts), texts, shared)


@pytest.fixture(scope="module")
def model() -> GPT:
    return GPT(CONFIG, generator=torch.Generator().manual_seed(0)).eval()


@pytest.mark.thorough
@pytest.mark.skipif(platform.system() != "Linux", reason="no /proc/self/status")
def test_copies_of_texts_that_join_one_after_the_other_take_the_memory_of_their_positions(model: GPT) -> None:
    texts, shared = [text_of(model, 900) for _ in range(18)], DecodeCache()
    read_next(model, texts[:1], shared)
    before = resident_bytes()
    for count in range(2, 19):
        read_next(model, texts[:count], shared)
        assert resident_bytes() - before < 1.1 * count * 960 * POSITION_BYTES + 2**22, count


def test_one_long_text_takes_no_memory_in_the_rows_of_short_ones(model: GPT) -> None:
    texts, shared = [text_of(model, length) for length in (900, 900, 9, 9, 9, 9, 9, 9)], DecodeCache()
    read_next(model, texts, shared)
    assert shared.n_bytes == (2 * 960 + 6 * 64) * POSITION_BYTES


def test_copies_are_limited_to_32_texts_and_the_context(model: GPT) -> None:
    texts, shared = [text_of(model, 6) for _ in range(MAX_ROWS + 2)], DecodeCache()
    read_next(model, texts, shared)
    assert shared.n_bytes == MAX_ROWS * 64 * POSITION_BYTES
    full, shared = [text_of(model, 1023) for _ in range(2)], DecodeCache()
    read_next(model, full, shared)
    assert shared.n_bytes == 2 * 1024 * POSITION_BYTES


def test_memory_of_texts_that_ended_is_returned_and_the_others_go_on(model: GPT) -> None:
    texts, shared = [text_of(model, 300) for _ in range(8)], DecodeCache()
    read_next(model, texts, shared)
    shared.trim()
    read_next(model, texts[:2], shared)
    assert shared.n_bytes == 8 * 320 * POSITION_BYTES
    shared.trim()
    assert shared.n_bytes == 0
    read_next(model, texts[:2], shared)
    assert shared.n_bytes == 2 * 320 * POSITION_BYTES
    shared.trim()
    assert shared.n_bytes == 2 * 320 * POSITION_BYTES  # both of these were needed
    shared.trim()
    assert shared.n_bytes == 0


def test_texts_without_room_attend_in_their_own_caches(model: GPT) -> None:
    texts, alone, shared = [text_of(model, 6) for _ in range(5)], text_of(model, 6), DecodeCache()
    shared.free_bytes = lambda: 3 * 256 * POSITION_BYTES - shared.n_bytes
    expected = batched_hidden_states(model, [[2]], [alone], DecodeCache())[0]
    for state in batched_hidden_states(model, [[2]] * 5, texts, shared):
        torch.testing.assert_close(state, expected, atol=1e-5, rtol=0)
    assert shared.n_bytes == 3 * 64 * POSITION_BYTES
