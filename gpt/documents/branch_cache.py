"""Activations of the branches of a document that are not its current text."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from gpt.checks import check_integer

MAX_BRANCH_BYTES = 2**28


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

    max_bytes: size limit; beyond it, the oldest spans are evicted. spans: by their first nodes, oldest first.
    evicted: nodes whose activations were evicted and have not been recomputed.
    """

    def __init__(self, max_bytes: int) -> None:
        check_integer("max_branch_bytes", max_bytes, 0)
        self.max_bytes = max_bytes
        self.evicted: set[int] = set()
        self.spans: OrderedDict[int, CachedSpan] = OrderedDict()  # {first node: span}, oldest first

    @property
    def n_bytes(self) -> int:
        """Total size of all spans, in bytes."""
        return sum(span.n_bytes for span in self.spans.values())

    def copy(self) -> BranchCache:
        """Return an independent copy that shares the immutable spans."""
        other = BranchCache(self.max_bytes)
        other.evicted, other.spans = set(self.evicted), self.spans.copy()
        return other

    def put(self, nodes: Sequence[int], rows: Sequence[Tensor]) -> None:
        """Store copies of the rows of consecutive nodes (see `KVCache.rows`)."""
        self._store(CachedSpan(tuple(nodes), tuple(row.clone() for row in rows)))

    def take(self, nodes: Sequence[int]) -> Iterator[tuple[Tensor, ...]]:
        """Remove these nodes and yield their rows, in one or more parts.

        The cached nodes form a prefix of `nodes`, because a node is never stored or evicted later than its ancestors.
        """
        while nodes and (span := self.spans.pop(nodes[0], None)) is not None:
            n = common_prefix_length(span.nodes, nodes)
            yield tuple(row[..., :n, :] for row in span.rows)
            if n < len(span.nodes):
                self._store(span.without_first(n))
            nodes = nodes[n:]

    def forget(self, start: int) -> None:
        """Discard all nodes numbered `start` or higher. The nodes of a span are in ascending order."""
        self.evicted = {node for node in self.evicted if node < start}
        for first, span in list(self.spans.items()):
            kept = bisect_left(span.nodes, start)
            if kept == 0:
                del self.spans[first]
            elif kept < len(span.nodes):
                self.spans[first] = CachedSpan(
                    span.nodes[:kept], tuple(row[..., :kept, :].clone() for row in span.rows)
                )

    def _store(self, span: CachedSpan) -> None:
        self.spans[span.nodes[0]] = span
        while self.n_bytes > self.max_bytes:
            self.evicted.update(self.spans.popitem(last=False)[1].nodes)


def common_prefix_length(left: Sequence[int], right: Sequence[int]) -> int:
    """Return the length of the longest common prefix of two sequences."""
    shorter = min(len(left), len(right))
    return next((n for n in range(shorter) if left[n] != right[n]), shorter)
