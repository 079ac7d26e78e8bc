"""What a GPT remembers of the tokens it has read, so that each new token costs one step."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from contextlib import suppress

import torch
from torch import Tensor

from gpt.config import GPTConfig
from gpt.errors import GPTError

STEP = 16  # positions that one step of a vector unit takes
LARGE = 2**20  # bytes from which memory is asked for by the page


def whole_steps(count: int) -> int:
    """The next multiple of STEP."""
    return -(-count // STEP) * STEP


def rows_of(groups: int, length: int, apart: int, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """The first `length` rows of each group, where groups begin `apart` rows from each other.

    Returns (groups length,), the rows, and (groups,), where in them each group begins.
    """
    group = torch.arange(groups, dtype=torch.int32, device=device)
    rows = group[:, None] * apart + torch.arange(length, dtype=torch.int32, device=device)
    return rows.flatten(), group * length


def lazy_zeros(
    shape: Sequence[int], dtype: torch.dtype, device: torch.device | str = "cpu", *, huge_pages: bool = False
) -> Tensor:
    """torch.zeros, where large memory is only taken page by page, as it is written to.

    huge_pages: of 2 MiB, if Linux has them: faster to read, where all of it will be used.
    """
    n_bytes = math.prod(shape) * dtype.itemsize
    if torch.device(device).type != "cpu" or n_bytes < LARGE:
        return torch.zeros(tuple(shape), dtype=dtype, device=device)
    memory = mmap.mmap(-1, n_bytes)
    if huge_pages and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a Linux without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=dtype).view(tuple(shape))


class KVCache:
    """Keys and values of every layer, in memory taken once; passed to each call of the model.

    k, v: (n_layer, B, n_head, max_length, head_size); the first `length` positions are filled.
    layers: of each layer all that is kept of the first text, (2 or 3, nh, S, hs), then k and v of all texts, where S
        is max_length in whole STEPs.
    rewritten: how often something that was stored has been given up.
    keep_queries: also keep the queries, so that `attn_weights` can show any head of any position
        read so far without running the model again.
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
        positions = whole_steps(self.max_length)
        shape = (config.n_layer, 2 + keep_queries, batch_size, config.n_head, positions, config.head_size)
        kept = lazy_zeros(shape, dtype, device)
        self.layers = [(layer[:, 0], layer[-2], layer[-1]) for layer in kept]
        self._first = kept[:, :, 0]
        kept = kept[..., : self.max_length, :]
        self.k, self.v = kept[:, -2], kept[:, -1]
        self.q = kept[:, 0] if keep_queries else None
        self.length = self.rewritten = 0
        self._views_end = 0

    def update(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new positions of one layer, each (B, nh, T, hs); return all keys and values so far.

        The length moves on only with `advance`, once every layer has stored its part.
        """
        self.need(k.shape[2])
        end = self.length + k.shape[2]
        self.k[layer, :, :, self.length : end] = k
        self.v[layer, :, :, self.length : end] = v
        if self.q is not None:
            self.q[layer, :, :, self.length : end] = q
        return self.k[layer, :, :, :end], self.v[layer, :, :, :end]  # (B, nh, S, hs)

    def views(self) -> tuple[list[tuple[Tensor, Tensor, Tensor]], tuple[Tensor, Tensor]]:
        """What one more position of one text needs, see `gpt.inference.step`; `need` is for the caller.

        Of each layer: all that is kept, (2 or 3, nh, S, hs), the keys up to the next whole STEP, (nh, end, hs), and the
        values as rows, (nh S, hs). Of all: which rows lie before that end, see `rows_of`. What lies beyond the position
        is to be masked.
        """
        end = whole_steps(self.length + 1)
        if end != self._views_end:  # making the same views for every token would cost more than many a product
            n_head, positions, head_size = self.layers[0][1].shape[1:]
            layers = [(kept, k[0, :, :end], v[0].view(-1, head_size)) for kept, k, v in self.layers]
            self._views = layers, rows_of(n_head, end, positions, self.k.device)
            self._views_end = end
        return self._views

    def put(self, qkv: Tensor) -> None:
        """Store one position of one text in all layers: qkv is (n_layer, 3, nh, hs)."""
        self._first[:, :, :, self.length] = qkv[:, -self._first.shape[1] :]

    def need(self, count: int) -> None:
        """Raise ValueError unless there is room for `count` more positions."""
        if self.length + count > self.max_length:
            raise GPTError("cache.full", n=self.length + count, limit=self.max_length)

    def advance(self, count: int) -> None:
        """Say that `count` positions were stored in every layer."""
        self.length += count

    def crop(self, length: int) -> None:
        """Forget everything from position `length` on."""
        if not 0 <= length <= self.length:
            raise GPTError("argument.range", name="length", low=0, high=self.length, value=length)
        self.rewritten += length < self.length
        self.length = length

    def fork(self, config: GPTConfig, batch_size: int, max_length: int, length: int | None = None) -> KVCache:
        """A cache for a batch of texts that all go on from the first `length` positions of this one's text, or all."""
        n = self.length if length is None else length
        other = KVCache(config, batch_size, max_length, dtype=self.k.dtype, device=self.k.device)
        other.k[:, :, :, :n], other.v[:, :, :, :n] = self.k[:, :, :, :n], self.v[:, :, :, :n]
        other.advance(n)
        return other

    def copy_(self, other: KVCache) -> None:
        """Take over everything that another cache of the same shape holds."""
        for mine, theirs in ((self.k, other.k), (self.v, other.v), (self.q, other.q)):
            if mine is not None and theirs is not None:
                mine[:, :, :, : other.length] = theirs[:, :, :, : other.length]
        self.rewritten += 1
        self.length = other.length

    def attn_weights(self, layer: int, *, start: int = 0, stop: int | None = None) -> Tensor:
        """softmax(q k^T / sqrt(hs)) of one layer with nothing above the diagonal, from what is stored.

        Returns (B, nh, stop - start, stop), the queries from position `start` to before `stop`, by default all. Only
        for a cache that keeps queries and was filled without a padding mask.
        """
        if self.q is None:
            raise GPTError("cache.no_queries")
        S = self.length if stop is None else stop
        q, k = self.q[layer, :, :, start:S], self.k[layer, :, :, :S]
        scores = (q.float() @ k.float().transpose(-2, -1)).div_(math.sqrt(q.shape[-1]))  # (B, nh, S - start, S)
        future = torch.ones(S - start, S, dtype=torch.bool, device=q.device).triu(start + 1)
        return scores.masked_fill_(future, -math.inf).softmax(dim=-1)
