"""Key-value cache: keys and values of the tokens read so far, so that each new token needs one step only."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gpt.config import GPTConfig
from gpt.errors import GPTError


class KVCache:
    """Keys and values of every layer, in memory allocated once; an argument of each call of the model.

    k, v: (n_layer, B, n_head, max_length, head_size); the first `length` positions are filled, the others undefined.
    keep_queries: store the queries as well, in q, so that `attn_weights` can compute the weights of any head at any
        position without another pass; else q is None.
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
        if not 1 <= self.max_length <= config.block_size:
            raise GPTError("argument.range", name="max_length", low=1, high=config.block_size, value=self.max_length)
        if batch_size < 1:
            raise GPTError("argument.minimum", name="batch_size", low=1, value=batch_size)
        shape = (config.n_layer, 2 + keep_queries, batch_size, config.n_head, self.max_length, config.head_size)
        self._stored = torch.empty(
            shape, dtype=dtype, device=device
        )  # on a CPU, pages are allocated when first written
        self.k, self.v = self._stored[:, -2], self._stored[:, -1]
        self.q = self._stored[:, 0] if keep_queries else None
        self.length = 0
        self.n_crops = 0  # how often positions were dropped

    def update(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new positions of one layer, each (B, nh, T, hs); return all keys and values so far.

        `length` changes only with `advance`, once every layer has stored its part.
        """
        self.check_room(k.shape[2])
        end = self.length + k.shape[2]
        self.k[layer, :, :, self.length : end] = k
        self.v[layer, :, :, self.length : end] = v
        if self.q is not None:
            self.q[layer, :, :, self.length : end] = q
        return self.k[layer, :, :, :end], self.v[layer, :, :, :end]  # (B, nh, S, hs)

    def layer_views(self, count: int) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Views of each layer for the next `count` positions, made at once because each slice costs time.

        Where they are stored, (2 or 3, B, nh, count, hs): queries if kept, keys and values; then all keys and all
        values up to and including them, (B, nh, S, hs).
        """
        end = self.length + count
        new = self._stored[..., self.length : end, :].unbind(0)
        return list(zip(new, self.k[..., :end, :].unbind(0), self.v[..., :end, :].unbind(0), strict=True))

    def append(self, new: Tensor) -> None:
        """Store one position of every layer: queries, keys and values, (n_layer, 3, nh, hs). Of batch size 1 only."""
        self._stored[:, :, 0, :, self.length] = new[:, -self._stored.shape[1] :]
        self.advance(1)

    def check_room(self, count: int) -> None:
        """Raise ValueError unless there is room for `count` more positions."""
        if self.length + count > self.max_length:
            raise GPTError("cache.full", n=self.length + count, limit=self.max_length)

    def advance(self, count: int) -> None:
        """Count `count` more positions, stored in every layer."""
        self.length += count

    def crop(self, length: int) -> None:
        """Drop everything from position `length` on."""
        if not 0 <= length <= self.length:
            raise GPTError("argument.range", name="length", low=0, high=self.length, value=length)
        self.n_crops += length < self.length
        self.length = length

    def fork(self, config: GPTConfig, batch_size: int, max_length: int, length: int | None = None) -> KVCache:
        """A cache for a batch of texts that all continue from the first `length` positions of this one, or all."""
        n = self.length if length is None else length
        other = KVCache(config, batch_size, max_length, dtype=self.k.dtype, device=self.k.device)
        other.k[:, :, :, :n], other.v[:, :, :, :n] = self.k[:, :, :, :n], self.v[:, :, :, :n]
        other.advance(n)
        return other

    def copy_(self, other: KVCache) -> None:
        """Copy the content of another cache of the same shape."""
        for mine, theirs in ((self.k, other.k), (self.v, other.v), (self.q, other.q)):
            if mine is not None and theirs is not None:
                mine[:, :, :, : other.length] = theirs[:, :, :, : other.length]
        self.length, self.n_crops = other.length, self.n_crops + 1

    def attn_weights(self, layer: int, *, start: int = 0, stop: int | None = None) -> Tensor:
        """Attention weights of one layer, softmax(q k^T / sqrt(hs)) with the causal mask, from what is stored.

        Returns (B, nh, stop - start, stop): the queries from position `start` to before `stop`, by default all. Only
        for a cache that keeps queries and was filled without a padding mask.
        """
        if self.q is None:
            raise GPTError("cache.no_queries")
        S = self.length if stop is None else stop
        q, k = self.q[layer, :, :, start:S], self.k[layer, :, :, :S]
        attn_scores = (q.float() @ k.float().transpose(-2, -1)).div_(math.sqrt(q.shape[-1]))  # (B, nh, S - start, S)
        future = torch.ones(S - start, S, dtype=torch.bool, device=q.device).triu(start + 1)
        return attn_scores.masked_fill_(future, -math.inf).softmax(dim=-1)
