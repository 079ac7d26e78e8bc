"""Key-value cache: stores the keys and values of earlier tokens, so that the model computes only new tokens."""

from __future__ import annotations

import math
from copy import copy
from typing import Self
from weakref import WeakSet

import torch
from torch import Tensor

from gpt.config import GPTConfig
from gpt.errors import GPTError, check_integer
from gpt.layers import attention_scores

BLOCK = 64  # memory grows by multiples of this number of positions


class KVCache:
    """Keys and values for every layer. Pass it to every call to the model.

    `k` and `v` have shape (n_layer, B, kv_heads, capacity, head_size). Only the first `length` positions are filled;
    the others are undefined. The capacity grows with the text, up to max_length.

    Args:
        config: The model's configuration.
        batch_size: Number of texts.
        max_length: Largest number of positions; defaults to the model's context length.
        dtype: Data type of the keys and values.
        device: Device of the keys and values.
        keep_queries: Also store the queries, in `q` (n_layer, B, n_head, capacity, head_size), so that
            `attn_weights` can compute the weights of any head without another forward pass.

    `length` grows only after all activations of a position are stored, so another thread may read those of the first
    `length` positions at any time.
    """

    def __init__(
        self,
        config: GPTConfig,
        batch_size: int = 1,
        max_length: int | None = None,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        keep_queries: bool = False,
    ) -> None:
        self.max_length = config.block_size if max_length is None else max_length
        check_integer("max_length", self.max_length, 1, config.block_size)
        check_integer("batch_size", batch_size, 1)
        self.config = config
        heads = 2 * config.kv_heads + (config.n_head if keep_queries else 0)  # per layer: queries, keys, values
        self._stored = torch.empty(config.n_layer, batch_size, heads, 0, config.head_size, dtype=dtype, device=device)
        self.length = 0
        self.n_crops = 0  # number of times positions were dropped
        self.n_text = 0  # number of tokens of the text for which the keys are rotated, see `begin`
        self._keeps_queries, self._kv_heads = keep_queries, config.kv_heads
        self._sharing: WeakSet[KVCache] | None = None  # caches that use the same memory, see `share`

    @property
    def is_long(self) -> bool:
        """Whether the keys are rotated differently from those of a short text."""
        scaling = self.config.rotary_scaling
        return scaling is not None and scaling.angles_key(self.n_text) != scaling.angles_key(0)

    @property
    def kv(self) -> Tensor:
        """Keys, followed by values: (n_layer, B, 2 kv_heads, capacity, head_size)."""
        return self._stored[:, :, -2 * self._kv_heads :]

    @property
    def k(self) -> Tensor:
        """Keys: (n_layer, B, kv_heads, capacity, head_size)."""
        return self.kv[:, :, : self._kv_heads]

    @property
    def v(self) -> Tensor:
        """Values: (n_layer, B, kv_heads, capacity, head_size)."""
        return self.kv[:, :, self._kv_heads :]

    @property
    def q(self) -> Tensor | None:
        """Queries: (n_layer, B, n_head, capacity, head_size); None unless they are kept."""
        return self._stored[:, :, : self.config.n_head] if self._keeps_queries else None

    @property
    def n_bytes(self) -> int:
        """Size of the allocated memory, in bytes. Caches that share memory each count a part."""
        return self._stored.nbytes if self._sharing is None else self._stored.nbytes // len(self._sharing)

    def reserve(self, count: int) -> None:
        """Allocate memory for `count` positions, at most max_length, and copy what it shares with another cache."""
        self.check_room(count - self.length)
        if self._sharing is not None and len(self._sharing) > 1:  # others use the memory after these positions
            self._stored = self._stored[..., : self.length, :]
            self._sharing.discard(self)
        self._sharing = None
        self._stored = with_room(self._stored, self.length, count, self.max_length)

    def select(self, rows: Tensor) -> None:
        """Keep only the batch rows at these indices, (B',), in the given order."""
        if len(rows) > self._stored.shape[1]:
            self._stored = self._stored[:, rows]
            return
        for layer in self._stored:  # in place, so that memory never holds two caches
            layer[: len(rows), :, : self.length] = layer[rows, :, : self.length]
        self._stored = self._stored[:, : len(rows)]

    def update(self, layer: int, qkv: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new positions for one layer: queries, keys and values, (B, nh + 2 kv_heads, T, hs).

        Returns all keys and values so far, each (B, kv_heads, S, hs). `length` does not change until `advance` is
        called, after every layer has stored its positions.
        """
        n_new, kv = qkv.shape[2], self._kv_heads
        end = self.length + n_new
        if end > self._stored.shape[-2] or self._sharing is not None:
            self.reserve(end)
        stored = self._stored[layer]  # (B, heads, capacity, hs)
        n_queries = stored.shape[1] - 2 * kv
        new = qkv if self._keeps_queries else qkv[:, -2 * kv :]
        stored.narrow(2, self.length, n_new).copy_(new)  # `narrow` is twice as fast as indexing
        read = stored.narrow(2, 0, end)  # (B, heads, S, hs)
        return read.narrow(1, n_queries, kv), read.narrow(1, n_queries + kv, kv)

    def append(self, new: Tensor) -> None:
        """Store one position of a single text: its queries, keys and values (n_layer, heads, hs)."""
        if self.length == self._stored.shape[-2] or self._sharing is not None:
            self.reserve(self.length + 1)
        self._stored[:, 0, :, self.length] = new[:, -self._stored.shape[2] :]
        self.advance(1)

    def check_room(self, count: int) -> None:
        """Raise ValueError unless `count` more positions fit."""
        if self.length + count > self.max_length:
            raise GPTError("cache.full", n=self.length + count, limit=self.max_length)

    def advance(self, count: int) -> None:
        """Increase the length by `count`, once every layer has stored the positions."""
        self.length += count

    def crop(self, length: int) -> None:
        """Truncate the cache to its first `length` positions."""
        if length != self.length:
            check_integer("length", length, 0, self.length)
            self.n_crops += 1
            self.length = length

    def begin(self, n_text: int) -> bool:
        """Prepare to read a text of n_text tokens in all. Returns whether the text has to be read from its start.

        It does if the rotary angles of all positions differ from those of the text that has been read so far (see
        `RotaryScaling.angles_key`). The cache is then empty.
        """
        before, self.n_text, scaling = self.n_text, n_text, self.config.rotary_scaling
        if scaling is None:
            return False
        changes = scaling.angles_key(n_text) != scaling.angles_key(before)
        if changes:
            self.crop(0)
        return changes

    def fork(self, batch_size: int, max_length: int, length: int | None = None) -> Self:
        """Return a cache for a batch of texts that all start with the first `length` positions of this cache."""
        check_integer("max_length", max_length, 1, self.config.block_size)
        check_integer("batch_size", batch_size, 1)
        n = self.length if length is None else length
        n_layer, _, heads, _, head_size = self.kv.shape
        other = copy(self)
        other._keeps_queries, other._sharing = False, None
        other._stored = self.kv.new_empty(n_layer, batch_size, heads, 0, head_size)
        other.max_length, other.length = max_length, 0
        other.reserve(n)
        other.kv[:, :, :, :n] = self.kv[:, :, :, :n]
        other.advance(n)
        return other

    def share(self) -> KVCache:
        """Return an independent cache with the same contents. Memory is copied when one of the two is extended."""
        self._sharing = WeakSet([self]) if self._sharing is None else self._sharing
        other = copy(self)
        self._sharing.add(other)
        return other

    def attn_weights(self, layer: int, *, head: int | None = None, start: int = 0, stop: int | None = None) -> Tensor:
        """Compute one layer's attention weights, softmax(q k^T / sqrt(hs) + mask), from the stored tensors.

        Returns (B, nh, stop - start, stop) for the queries from `start` to `stop` - 1, by default all of them. With a
        head, nh is 1. The cache must keep queries and must have been filled without a padding mask.
        """
        if self.q is None:
            raise GPTError("cache.no_queries")
        S, group = self.length if stop is None else stop, self.config.n_head // self.config.kv_heads
        heads, kv_heads = (slice(None), slice(None)) if head is None else (slice(head, head + 1), [head // group])
        q, k = self.q[layer, :, heads, start:S].float(), self.k[layer, :, kv_heads, :S].float()
        if head is None:
            k = k.repeat_interleave(group, dim=1)  # (B, nh, S, hs)
        attn_scores = attention_scores(q, k, self.config.score_scale, self.config.attn_softcap)  # (B, nh, S - start, S)
        hidden = torch.ones_like(attn_scores[0, 0], dtype=torch.bool).triu(start + 1)
        if (window := self.config.window_of(layer)) is not None:
            hidden |= torch.ones_like(hidden).tril(start - window)
        return attn_scores.masked_fill_(hidden, -math.inf).softmax(dim=-1)


def with_room(rows: Tensor, length: int, count: int, limit: int) -> Tensor:
    """Return rows (..., capacity, width) with memory for `count` positions, keeping the first `length`.

    The capacity grows by at least half, so that a growing text is copied only a few times, but not beyond `limit`.
    """
    capacity = rows.shape[-2]
    if count <= capacity:
        return rows
    capacity = min(limit, math.ceil(max(count, 1.5 * capacity) / BLOCK) * BLOCK)
    with torch.inference_mode(False):  # the result can be written to in any mode
        grown = rows.new_empty(*rows.shape[:-2], capacity, rows.shape[-1])
        grown[..., :length, :] = rows[..., :length, :]
    return grown
