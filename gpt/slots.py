"""Keys and values of the texts that are written at the same moment, side by side: one product looks back for all.

Each text keeps what was read in a cache of its own. While several go on together, their keys and values also stand in
slots of one block of memory: to ask for one text's attention after the other's would take longer than all else in a
step. Lengths are filled up to whole STEPs and masked: what a text sees is the same to the bit, whoever else is there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from gpt.cache import KVCache, lazy_zeros, whole_steps
from gpt.config import GPTConfig

SLOTS = 32
LENGTH = 256  # positions of a slot; a longer text is looked back on alone, where one call more no longer counts


def look_back(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor) -> Tensor:
    """softmax(q k / sqrt(hs) + hidden) v of one query each: q (N, 1, hs), k (N, hs, S), v (N, S, hs) -> (N, 1, hs).

    hidden: 0 where looking is allowed, else -inf; (S,) or (N, 1, S), S in whole STEPs.
    """
    scores = torch.baddbmm(hidden, q, k, alpha=1 / math.sqrt(q.shape[-1]))
    return torch.bmm(scores.softmax(dim=-1), v)


@dataclass
class Seat:
    """Where a text stands. filled: positions that are up to date; rewritten: of the cache, when they were."""

    slot: int
    filled: int
    rewritten: int
    last_step: int


class Slots:
    """Room for the keys and values of several texts. Memory is taken as they fill it."""

    def __init__(self, config: GPTConfig, dtype: torch.dtype) -> None:
        self.length = min(LENGTH, whole_steps(config.block_size))
        shape = (config.n_layer, 2, SLOTS, config.n_head, self.length, config.head_size)
        self.layers = [(layer, layer[0], layer[1]) for layer in lazy_zeros(shape, dtype, huge_pages=True)]
        self._seats: WeakKeyDictionary[KVCache, Seat] = WeakKeyDictionary()
        self._steps = 0

    def together(self, caches: Sequence[KVCache]) -> Together | None:
        """Seat the texts that are short enough for one more token; None where these are fewer than two."""
        rows = [row for row, cache in enumerate(caches) if cache.length < self.length][:SLOTS]
        if len(rows) < 2:
            return None
        self._steps += 1
        short = [caches[row] for row in rows]
        seats = self._seated(short)
        for cache, seat in zip(short, seats, strict=True):
            self._fill(cache, seat)
        return Together(self, rows, short, seats)

    def _seated(self, caches: Sequence[KVCache]) -> list[Seat]:
        """A seat for each, none far behind the others: empty slots between them cost time."""
        limit = min(SLOTS, len(caches) * 3 // 2 + 1)
        kept = {cache: seat for cache in caches if (seat := self._seats.get(cache)) and seat.slot < limit}
        if len(kept) < len(caches):
            staying = {seat.slot for seat in kept.values()}
            owners = {seat.slot: (seat.last_step, cache) for cache, seat in self._seats.items()}
            free = sorted(set(range(limit)) - staying, key=lambda slot: (owners.get(slot, (-1,))[0], slot))
            for cache in caches:
                if cache not in kept:
                    slot = free.pop(0)
                    if slot in owners:
                        self._seats.pop(owners[slot][1], None)
                    kept[cache] = self._seats[cache] = Seat(slot, 0, cache.rewritten, 0)
        for seat in kept.values():
            seat.last_step = self._steps
        return [kept[cache] for cache in caches]

    def _fill(self, cache: KVCache, seat: Seat) -> None:
        """Bring a seat up to what its text has read."""
        start = seat.filled if seat.rewritten == cache.rewritten else 0
        if start < cache.length:
            for (kept, _, _), k, v in zip(self.layers, cache.k, cache.v, strict=True):
                kept[0, seat.slot, :, start : cache.length] = k[0, :, start : cache.length]
                kept[1, seat.slot, :, start : cache.length] = v[0, :, start : cache.length]
        seat.filled, seat.rewritten = cache.length, cache.rewritten


class Together:
    """One step of several texts in their seats. rows: which of the step's texts they are."""

    def __init__(self, slots: Slots, rows: list[int], caches: list[KVCache], seats: list[Seat]) -> None:
        self.slots, self.rows, self.caches, self.seats = slots, rows, caches, seats
        places, lengths = [seat.slot for seat in seats], [cache.length for cache in caches]
        self.places, self.positions = torch.tensor(places), torch.tensor(lengths)
        self.in_order = places == list(range(len(places)))
        self.count, self.length = max(places) + 1, whole_steps(max(lengths) + 1)
        ends = torch.full((self.count, 1), self.length)  # nobody looks at what a seat without a text gives
        ends[self.places, 0] = self.positions + 1
        kept, k, _ = slots.layers[0]
        hidden = kept.new_zeros(self.count, self.length).masked_fill_(torch.arange(self.length) >= ends, -math.inf)
        self.hidden = hidden[:, None].expand(-1, k.shape[1], -1).reshape(-1, 1, self.length)  # (count nh, 1, S)
        self.read: list[Tensor] = []

    def look(self, layer: int, qkv: Tensor) -> Tensor:
        """Queries, keys and values of the new tokens, (n, 3, nh, hs) -> what each sees, (n, C)."""
        kept, k, v = self.slots.layers[layer]
        kept[:, self.places, :, self.positions] = qkv[:, 1:]
        self.read.append(qkv)
        q = qkv[:, 0]  # (n, nh, hs)
        if not self.in_order:
            q = q.new_zeros(self.count, *q.shape[1:]).index_copy_(0, self.places, q)
        k, v = (rows[: self.count, :, : self.length].flatten(0, 1) for rows in (k, v))  # (count nh, S, hs)
        y = look_back(q.reshape(-1, 1, q.shape[-1]), k.mT, v, self.hidden).view(self.count, -1)
        return y if self.in_order else y[self.places]

    def keep(self) -> None:
        """Put what every layer has read into the texts' own caches as well."""
        read = torch.stack(self.read)  # (n_layer, n, 3, nh, hs)
        for row, (cache, seat) in enumerate(zip(self.caches, self.seats, strict=True)):
            cache.put(read[:, row])
            seat.filled += 1
