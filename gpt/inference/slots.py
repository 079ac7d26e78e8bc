"""Keys and values of the texts that are written at the same moment, side by side: one product looks back for all.

Each text keeps what was read in a cache of its own. While several go on together, their keys and values also stand in
slots of one block of memory: to ask for one text's attention after the other's would take longer than all else in a
step. Lengths are filled up to whole STEPs and masked: what a text sees is the same to the bit, whoever else is there
(within 1e-6 where a model has one head, or heads of less than 32 numbers).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from gpt.cache import KVCache, lazy_zeros, rows_of, whole_steps
from gpt.config import GPTConfig
from gpt.inference.step import Block, Rotation, Seated, Seen, keys_first, look_together

SLOTS = 32
LENGTH = 256  # positions of a slot; a longer text is looked back on alone, where one call more no longer counts


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
        self.layers = list(lazy_zeros(shape, dtype, huge_pages=True))
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
            for kept, k, v in zip(self.layers, cache.k, cache.v, strict=True):
                kept[0, seat.slot, :, start : cache.length] = k[0, :, start : cache.length]
                kept[1, seat.slot, :, start : cache.length] = v[0, :, start : cache.length]
        seat.filled, seat.rewritten = cache.length, cache.rewritten


class Together:
    """One step of several texts in their seats. rows: which of the step's texts they are."""

    def __init__(self, slots: Slots, rows: list[int], caches: list[KVCache], seats: list[Seat]) -> None:
        self.layers, self.rows, self.caches, self.seats = slots.layers, rows, caches, seats
        places, lengths = [seat.slot for seat in seats], [cache.length for cache in caches]
        count, length = max(places) + 1, whole_steps(max(lengths) + 1)
        at, positions = torch.tensor(places), torch.tensor(lengths)
        ends = torch.full((count, 1), length)  # nobody looks at what a slot without a text gives
        ends[at, 0] = positions + 1
        kept = slots.layers[0]
        hidden = kept.new_zeros(count, length).masked_fill_(torch.arange(length) >= ends, -math.inf)
        hidden = hidden[:, None].expand(-1, kept.shape[2], -1).reshape(-1, 1, length)  # (count nh, 1, S)
        seen = Seen(*rows_of(count * kept.shape[2], length, kept.shape[3]), hidden, keys_first(kept.device))
        self.seated = Seated(at, positions, seen, in_order=places == list(range(len(places))))
        self.read: list[Tensor] = []

    def through(self, layer: int, block: Block, x: Tensor, rotation: Rotation) -> Tensor:
        """The stream behind a block where nobody else is in the step."""
        x, qkv = block.together(x, rotation, self.layers[layer], self.seated)
        self.read.append(qkv)
        return x

    def look(self, layer: int, qkv: Tensor) -> Tensor:
        """What these texts see, (n, C), of their queries, keys and values, (n, 3, nh, hs)."""
        self.read.append(qkv)
        return look_together(qkv, self.layers[layer], self.seated)

    def keep(self) -> None:
        """Put what every layer has read into the texts' own caches as well."""
        read = torch.stack(self.read)  # (n_layer, n, 3, nh, hs)
        for row, (cache, seat) in enumerate(zip(self.caches, self.seats, strict=True)):
            cache.put(read[:, row])
            seat.filled += 1
