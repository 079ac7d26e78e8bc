"""So many at once; whoever comes later waits in order, and knows how many are before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

WORD_SECONDS = 0.5  # between two words to somebody who waits


class Seats:
    """The first `count` in line have a seat; when one leaves, the next in line has it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._line: list[object] = []
        self._change = threading.Condition()

    @property
    def busy(self) -> int:
        """How many are taken now."""
        return min(self.count, len(self._line))

    @contextmanager
    def taken(self) -> Iterator[Iterator[int]]:
        """`with seats.taken() as places: for before in places: ...`: how many are before, until there is a seat.

        The seat, or the place in line, is given back at the end of the block, however it ends.
        """
        ticket = object()
        with self._change:
            self._line.append(ticket)
        try:
            yield self._places(ticket)
        finally:
            with self._change:
                self._line.remove(ticket)
                self._change.notify_all()

    def _places(self, ticket: object) -> Iterator[int]:
        while (before := self._before(ticket)) > 0:
            yield before
            with self._change:
                self._change.wait_for(lambda told=before: self._before(ticket) < told, timeout=WORD_SECONDS)

    def _before(self, ticket: object) -> int:
        with self._change:
            return self._line.index(ticket) - self.count + 1
