"""Cached activations of the branches that are not current, up to a limit of memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from gpt.checks import check_integer


@dataclass(frozen=True)
class CachedSpan:
    """Activations of consecutive nodes of a branch. rows: tensors (..., n, width), one row for each of the n nodes."""

    nodes: tuple[int, ...]
    rows: tuple[Tensor, ...]

    @property
    def n_bytes(self) -> int:
        return sum(row.numel() * row.element_size() for row in self.rows)

    def without_first(self, count: int) -> CachedSpan:
        """A copy of the span without its first nodes."""
        return CachedSpan(self.nodes[count:], tuple(row[..., count:, :].clone() for row in self.rows))


class BranchCache:
    """Activations of nodes that are not on the current path, each stored once.

    max_bytes: beyond it, the spans stored earliest are evicted. evicted: nodes whose activations were lost that way
    and have not been computed again.
    """

    def __init__(self, max_bytes: int) -> None:
        check_integer("max_branch_bytes", max_bytes, 0)
        self.max_bytes = max_bytes
        self.evicted: set[int] = set()
        self._spans: OrderedDict[int, CachedSpan] = OrderedDict()  # by first node, in the order of storing

    @property
    def n_bytes(self) -> int:
        """Bytes of all spans."""
        return sum(span.n_bytes for span in self._spans.values())

    def copy(self) -> BranchCache:
        """An independent cache that shares the spans, which never change."""
        other = BranchCache(self.max_bytes)
        other.evicted, other._spans = set(self.evicted), self._spans.copy()
        return other

    def put(self, nodes: Sequence[int], rows: Sequence[Tensor], start: int) -> None:
        """Copy the rows of consecutive nodes, which begin at `start` in each tensor."""
        end = start + len(nodes)
        self._store(CachedSpan(tuple(nodes), tuple(row[..., start:end, :].clone() for row in rows)))

    def take(self, nodes: Sequence[int], rows: Sequence[Tensor], start: int) -> int:
        """Move the rows of the first nodes that are cached back into `rows` from `start` on; returns their number.

        Cached nodes form a prefix of `nodes`: a node is never stored later, nor evicted later, than its ancestors.
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
        """Drop the nodes from number `start` on. The nodes of a span are in ascending order."""
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
    """Number of equal items at the beginning of both sequences."""
    shorter = min(len(left), len(right))
    return next((n for n in range(shorter) if left[n] != right[n]), shorter)
