"""Contiguous copies of the keys and values of texts that are generated together."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import ReferenceType, ref

from gpt.cache import KVCache

MAX_ROWS = 32  # maximum number of texts per attention kernel call
SHORT_TEXT = 256  # texts up to this length share a block
FILL_POSITIONS = 64  # a row's memory grows in steps of this many positions


@dataclass
class Row:
    """Contents of a block's row: the first `length` positions of a cache that has been cropped `n_crops` times.

    filled: number of positions that have ever been written and therefore occupy memory.
    """

    cache: ReferenceType[KVCache] | None = None
    n_crops: int = 0
    length: int = 0
    filled: int = 0


class Block:
    """Keys and values of similarly long texts, copied into one row per text so that one kernel call covers them all.

    kv: (n_layer, 2, rows, kv_heads, length, head_size), keys and values. On a CPU, memory is allocated on first write,
    so only rows in use take up memory, up to the length of the longest text. row_bytes: size of a full row.
    """

    def __init__(self, cache: KVCache, length: int) -> None:
        n_layer, _, heads, _, head_size = cache.k.shape
        self.kv = cache.kv.new_empty(n_layer, 2, 0, heads, length, head_size)
        self.row_bytes = 2 * n_layer * heads * length * head_size * self.kv.itemsize
        self._rows: list[Row] = []

    @property
    def n_bytes(self) -> int:
        if not self.kv.is_cpu:
            return self.kv.nbytes
        return self.row_bytes * sum(row.filled for row in self._rows) // self.kv.shape[-2]

    def has(self, cache: KVCache) -> bool:
        return any(row.cache is not None and row.cache() is cache for row in self._rows)

    def place(self, caches: Sequence[KVCache]) -> list[KVCache]:
        """Copy each of n caches into one of the first n rows, with room for one more position.

        Copies only the positions that are missing from the row. Returns the caches in the order of their rows.
        """
        n_rows, longest = len(caches), max(cache.length for cache in caches) + 1
        filled = min(math.ceil(longest / FILL_POSITIONS) * FILL_POSITIONS, self.kv.shape[-2])
        if n_rows > len(self._rows):
            self._reserve(min(MAX_ROWS, max(n_rows, 2 * len(self._rows))))
        known = {row.cache(): i for i, row in enumerate(self._rows[:n_rows]) if row.cache is not None}
        free = set(range(n_rows)) - {known.get(cache) for cache in caches}
        placed = {known[cache] if cache in known else free.pop(): cache for cache in caches}
        for i, cache in placed.items():
            row = self._rows[i]
            if row.cache is None or row.cache() is not cache or row.n_crops != cache.n_crops:
                row.cache, row.n_crops, row.length = ref(cache), cache.n_crops, 0
            if row.length < cache.length:
                new = slice(row.length, cache.length)
                self.kv[:, :, i, :, new] = cache.kv[:, 0, :, new].unflatten(1, (2, -1))
                row.length = cache.length
            if row.filled < filled:
                self.kv[:, :, i, :, max(row.filled, row.length) : filled] = 0  # masked positions must be finite
                row.filled = filled
        return [placed[i] for i in range(n_rows)]

    def advance(self, n_rows: int) -> None:
        """Increase the length of the first rows by one. Call this after every layer has stored the position."""
        for row in self._rows[:n_rows]:
            row.length += 1

    def _reserve(self, n_rows: int) -> None:
        n_layer, _, _, *shape = self.kv.shape
        self._rows, self.kv = [], self.kv.new_empty(n_layer, 2, 0, *shape)  # free the memory before allocating more
        self.kv = self.kv.new_empty(n_layer, 2, n_rows, *shape)
        self._rows = [Row() for _ in range(n_rows)]


class DecodeCache:
    """Blocks for one model's texts. A text moves to a block of twice the length when its block is full.

    Long texts therefore do not increase the memory or time that short texts need. free_bytes: function that returns how
    many more bytes the blocks may use; a text that does not fit attends to its own cache, separately from the others.
    """

    def __init__(self) -> None:
        self.free_bytes: Callable[[], int] = lambda: sys.maxsize
        self._blocks: dict[int, Block] = {}  # {length: block}

    @property
    def n_bytes(self) -> int:
        return sum(block.n_bytes for block in list(self._blocks.values()))

    def groups(self, caches: Sequence[KVCache]) -> list[tuple[Block, list[KVCache]]]:
        """Group caches by block, with 2 to MAX_ROWS caches per block."""
        by_length: dict[int, list[KVCache]] = {}
        for cache in caches:
            needed = max(SHORT_TEXT, cache.length + 1)
            length = min(1 << (needed - 1).bit_length(), cache.config.block_size)
            by_length.setdefault(length, []).append(cache)
        found, free = [], self.free_bytes()
        for length, group in by_length.items():
            block = self._blocks.setdefault(length, Block(group[0], length))
            room = (free + block.n_bytes) // block.row_bytes
            group = sorted(group, key=lambda cache: not block.has(cache))[: max(0, min(room, MAX_ROWS))]
            if len(group) > 1:
                found.append((block, group))
                free -= max(0, len(group) * block.row_bytes - block.n_bytes)
        return found

    def trim(self) -> None:
        """Free the memory. The next pass copies what it needs."""
        self._blocks.clear()
