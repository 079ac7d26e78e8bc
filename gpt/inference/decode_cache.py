"""Keys and values of the texts that generate together, side by side in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import ReferenceType, ref

import torch

from gpt.cache import KVCache

POSITIONS = 64  # for which there is room at first


@dataclass
class Row:
    """What a row holds: the first `length` positions of a cache, as they were after `n_crops` crops."""

    cache: ReferenceType[KVCache]
    n_crops: int
    length: int


class DecodeCache:
    """Copies of the keys and values of several texts, a row for each, so that one kernel attends for all of them.

    kv: (n_layer, rows, 2 kv_heads, length, head_size), keys, then values; grows as needed, never shrinks.
    """

    def __init__(self) -> None:
        self.kv = torch.empty(1, 0, 2, POSITIONS // 2, 1)
        self._rows: list[Row | None] = []

    def place(self, caches: Sequence[KVCache]) -> list[int]:
        """The row of each of n caches, one of the first n, with its content and room for one more position.

        Only what a row does not hold yet is copied.
        """
        n_rows = len(caches)
        self._reserve(caches[0], n_rows, max(cache.length for cache in caches) + 1)
        known = {row.cache(): i for i, row in enumerate(self._rows[:n_rows]) if row is not None}
        free = set(range(n_rows)) - {known.get(cache) for cache in caches}
        places = [known[cache] if cache in known else free.pop() for cache in caches]
        for i, cache in zip(places, caches, strict=True):
            row = self._rows[i]
            if row is None or row.cache() is not cache or row.n_crops != cache.n_crops:
                row = self._rows[i] = Row(ref(cache), cache.n_crops, 0)
            if row.length < cache.length:
                new = slice(row.length, cache.length)
                self.kv[:, i, :, new] = cache.kv[:, 0, :, new]
                row.length = cache.length
        return places

    def advance(self, places: Sequence[int]) -> None:
        """Count one more position in each of these rows, stored in every layer."""
        for i in places:
            row = self._rows[i]
            assert row is not None
            row.length += 1

    def _reserve(self, cache: KVCache, n_rows: int, length: int) -> None:
        n_layer, _, heads, _, head_size = cache.kv.shape
        if n_rows > len(self._rows) or length > self.kv.shape[-2]:
            n_rows = len(self._rows) if n_rows <= len(self._rows) else max(n_rows, 2 * len(self._rows))
            length = max(length, 2 * self.kv.shape[-2])
            self.kv = cache.kv.new_zeros(n_layer, n_rows, heads, length, head_size)  # finite where it is masked
            self._rows = [None] * n_rows
