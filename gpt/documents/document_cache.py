"""Activations of a document: the key-value cache, the final-norm states, and a cache for the other branches."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from weakref import WeakSet

import torch
from torch import Tensor

from gpt.cache import with_room
from gpt.checks import check_integer
from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.inference.engine import Engine

MAX_BRANCH_BYTES = 2**28


class DocumentCache:
    """Queries, keys, values and final-norm states for all positions in a document's current text.

    A text is a path of nodes in a `TokenTree`. Before the path changes, `store_branch` moves the activations of the old
    path to the branch cache; then `restore_branch` moves the activations of the new path back, and the model
    computes the missing ones (`unread`, `store`).
    length: number of positions read; grows only after all activations of a position are stored.
    states: (capacity, C); only the first `length` rows are filled.
    """

    def __init__(self, engine: Engine, edits: Edits | None, max_branch_bytes: int) -> None:
        self.engine, self.model = engine, engine.model
        self.edits = None if edits == Edits() else edits
        self.kv = self.model.new_cache(keep_queries=True)
        self.states = torch.empty(0, self.model.config.n_embd, dtype=self.model.dtype, device=self.model.device)
        self._owners: WeakSet[DocumentCache] = WeakSet([self])  # caches that share the memory of `kv` and `states`
        self.branches = BranchCache(max_branch_bytes)
        self.length = 0
        self._newest: tuple[int, Tensor] | None = None  # latest position and the logits after it

    def copy(self) -> DocumentCache:
        """Return an independent copy. The activations are copied only when one of the two is extended."""
        other = copy(self)
        other.kv, other.branches = self.kv.share(), self.branches.copy()
        self._owners.add(other)
        return other

    def _reserve(self, count: int) -> None:
        """Make room for `count` positions, more than the current ones, in memory that no copy shares."""
        shared = self._owners if len(self._owners) > 1 else None
        if shared:
            self.kv.own()
            self.states = self.states[: self.length]
        self.kv.reserve(count)
        self.states = with_room(self.states, self.length, count, self.model.config.block_size)
        if shared:
            shared.discard(self)
            self._owners = WeakSet([self])

    @property
    def n_bytes(self) -> int:
        """Memory used by this text and the other branches, in bytes. Copies that share memory each count a part."""
        return (self.kv.n_bytes + self.states.nbytes) // len(self._owners) + self.branches.n_bytes

    def store_branch(self, path: Sequence[int], start: int) -> None:
        """Move the activations starting at position `start` to the branch cache. path: nodes of the current text."""
        if start < self.length:
            self.branches.put(path[start : self.length], self._buffers(), start)
            self.kv.crop(start)
            self.length, self._newest = start, None

    def restore_branch(self, path: Sequence[int]) -> None:
        """Move the cached activations of this path back from the branch cache."""
        unread = path[self.length : self.model.config.block_size]
        if not self.branches.has(unread):
            return
        self._reserve(self.length + len(unread))
        count = self.branches.take(unread, self._buffers(), self.length)
        self.kv.advance(count)
        self.length += count

    def unread(self, ids: Sequence[int]) -> Sequence[int]:
        """Make room for all positions of a text up to block_size, and return the ids of those that are not read yet."""
        end = min(len(ids), self.model.config.block_size)
        self._reserve(end)
        self.kv.crop(self.length)  # an interrupted read may have stored extra positions
        return ids[self.length : end]

    def store(self, states: Tensor, logits: Tensor, path: Sequence[int]) -> None:
        """Store the states (T, C) of the next positions and the logits after the last one."""
        start, end = self.length, self.length + len(states)
        self.states[start:end] = states
        self.length, self._newest = end, (end - 1, logits)
        self.branches.evicted.difference_update(path[start:end])

    @torch.inference_mode()
    def logits(self, position: int) -> Tensor:
        """Return the next-token logits after a position: (vocab_size,), float32."""
        if not 0 <= position < self.length:
            raise GPTError(
                "position.not_read",
                "position {position} has not been read; only the first {n} have",
                position=position,
                n=self.length,
            )
        newest = self._newest  # a concurrent `read` may replace it
        if newest is not None and newest[0] == position:
            return newest[1]
        return self.engine.logits(self.states[position : position + 1])[0]

    def activations(self, start: int) -> tuple[Tensor, ...]:
        """Copy all activations starting at position `start`, for use in `set_activations`."""
        return tuple(rows[..., start : self.length, :].clone() for rows in self._buffers())

    def crop(self, length: int) -> None:
        """Truncate the activations to the first `length` positions."""
        self.kv.crop(length)
        self.length, self._newest = length, None

    def take(self, other: DocumentCache, length: int) -> None:
        """Take over the first `length` positions of another cache, which must not be used afterwards.

        Leaves out the other cache's branches, because their nodes belong to another tree.
        """
        self.kv, self.states, self.length, self._owners = other.kv, other.states, other.length, other._owners
        self._owners.add(self)
        self._owners.discard(other)
        self.crop(min(length, other.length))

    def set_activations(self, start: int, rows: Sequence[Tensor]) -> None:
        """Store the result of `activations(start)` from another cache of the same text."""
        count = rows[0].shape[-2]
        self._reserve(start + count)
        for target, source in zip(self._buffers(), rows, strict=True):
            target[..., start : start + count, :] = source
        self.kv.crop(start)
        self.kv.advance(count)
        self.length, self._newest = start + count, None

    def _buffers(self) -> tuple[Tensor, ...]:
        """Return all tensors with one row per position: (..., capacity, width)."""
        assert self.kv.q is not None  # see keep_queries
        return self.kv.k, self.kv.v, self.kv.q, self.states


@dataclass(frozen=True)
class CachedSpan:
    """Activations of n consecutive nodes of a branch. rows: tensors (..., n, width) with one row per node."""

    nodes: tuple[int, ...]
    rows: tuple[Tensor, ...]

    @property
    def n_bytes(self) -> int:
        return sum(row.numel() * row.element_size() for row in self.rows)

    def without_first(self, count: int) -> CachedSpan:
        """Return a copy without the first `count` nodes."""
        return CachedSpan(self.nodes[count:], tuple(row[..., count:, :].clone() for row in self.rows))


class BranchCache:
    """Activations of nodes that are not on the current path, each stored once.

    max_bytes: size limit; beyond it, the oldest spans are evicted. evicted: nodes whose activations were evicted and
    have not been recomputed.
    """

    def __init__(self, max_bytes: int) -> None:
        check_integer("max_branch_bytes", max_bytes, 0)
        self.max_bytes = max_bytes
        self.evicted: set[int] = set()
        self._spans: OrderedDict[int, CachedSpan] = OrderedDict()  # {first node: span}, oldest first

    @property
    def n_bytes(self) -> int:
        """Total size of all spans, in bytes."""
        return sum(span.n_bytes for span in self._spans.values())

    def copy(self) -> BranchCache:
        """Return an independent copy that shares the immutable spans."""
        other = BranchCache(self.max_bytes)
        other.evicted, other._spans = set(self.evicted), self._spans.copy()
        return other

    def has(self, nodes: Sequence[int]) -> bool:
        """Return whether the first of these nodes is cached."""
        return len(nodes) > 0 and nodes[0] in self._spans

    def put(self, nodes: Sequence[int], rows: Sequence[Tensor], start: int) -> None:
        """Store copies of the rows of consecutive nodes, starting at `start` in each tensor."""
        end = start + len(nodes)
        self._store(CachedSpan(tuple(nodes), tuple(row[..., start:end, :].clone() for row in rows)))

    def take(self, nodes: Sequence[int], rows: Sequence[Tensor], start: int) -> int:
        """Move the rows of cached nodes back into `rows`, starting at `start`, and return their number.

        The cached nodes form a prefix of `nodes`, because a node is never stored or evicted later than its ancestors.
        """
        found = 0
        while found < len(nodes) and nodes[found] in self._spans:
            span = self._spans.pop(nodes[found])
            n = common_prefix_length(span.nodes, nodes[found:])
            for target, cached in zip(rows, span.rows, strict=True):
                target[..., start + found : start + found + n, :] = cached[..., :n, :]
            if n < len(span.nodes):
                self._store(span.without_first(n))
            found += n
        return found

    def forget(self, start: int) -> None:
        """Discard all nodes numbered `start` or higher. The nodes of a span are in ascending order."""
        self.evicted = {node for node in self.evicted if node < start}
        for first, span in list(self._spans.items()):
            kept = bisect_left(span.nodes, start)
            if kept == 0:
                del self._spans[first]
            elif kept < len(span.nodes):
                self._spans[first] = CachedSpan(
                    span.nodes[:kept], tuple(row[..., :kept, :].clone() for row in span.rows)
                )

    def _store(self, span: CachedSpan) -> None:
        self._spans[span.nodes[0]] = span
        while self.n_bytes > self.max_bytes:
            self.evicted.update(self._spans.popitem(last=False)[1].nodes)


def common_prefix_length(left: Sequence[int], right: Sequence[int]) -> int:
    """Return the length of the longest common prefix of two sequences."""
    shorter = min(len(left), len(right))
    return next((n for n in range(shorter) if left[n] != right[n]), shorter)
