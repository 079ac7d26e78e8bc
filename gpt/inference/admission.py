"""Admission queue with a concurrency limit, first in first out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from gpt.errors import GPTError

REPORT_SECONDS = 0.5  # between two reports to a caller that waits


class AdmissionQueue:
    """Admits `limit` callers at a time; the others wait in order of arrival."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._tickets: list[object] = []  # of admitted callers, then of waiting ones
        self._changed = threading.Condition()
        self.closed = False

    def close(self) -> None:
        """Admit nobody any more: who waits, and who comes, gets a GPTError."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    @property
    def n_admitted(self) -> int:
        """Number of callers that are admitted now."""
        return min(self.limit, len(self._tickets))

    @property
    def n_waiting(self) -> int:
        """Number of callers that wait for admission."""
        return max(0, len(self._tickets) - self.limit)

    @contextmanager
    def enter(self) -> Iterator[Iterator[int]]:
        """Join the queue: `with queue.enter() as ahead: for n in ahead: ...`.

        The iterator yields the number of callers ahead, at every change and at least every REPORT_SECONDS, and ends
        with admission. Leaving the block leaves the queue, admitted or not. Raises GPTError once the queue is closed.
        """
        ticket = object()
        with self._changed:
            self._check_open()
            self._tickets.append(ticket)
        try:
            yield self._wait(ticket)
        finally:
            with self._changed:
                self._tickets.remove(ticket)
                self._changed.notify_all()

    def _wait(self, ticket: object) -> Iterator[int]:
        while (ahead := self._ahead(ticket)) > 0:
            yield ahead
            with self._changed:
                self._changed.wait_for(partial(self._is_closer, ticket, ahead), timeout=REPORT_SECONDS)
                self._check_open()

    def _check_open(self) -> None:
        if self.closed:
            raise GPTError("admission.closed")

    def _is_closer(self, ticket: object, ahead: int) -> bool:
        return self.closed or self._ahead(ticket) < ahead

    def _ahead(self, ticket: object) -> int:
        with self._changed:
            return self._tickets.index(ticket) - self.limit + 1
