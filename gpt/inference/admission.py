"""Admission queue with a concurrency limit, first in first out; callers take turns while others wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from gpt.errors import GPTError

REPORT_SECONDS = 0.5  # between two reports to a caller that waits
TURN_TOKENS = 16  # that a caller generates before those who wait go first


class AdmissionQueue:
    """Admits `limit` callers at a time; the others wait in order of arrival."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.closed = False
        self._places: list[Place] = []  # of admitted callers, then of waiting ones
        self._lock = threading.Lock()

    @property
    def n_admitted(self) -> int:
        """Number of callers that are admitted now."""
        return min(self.limit, len(self._places))

    @property
    def n_waiting(self) -> int:
        """Number of callers that wait for admission."""
        return max(0, len(self._places) - self.limit)

    @contextmanager
    def enter(self) -> Iterator[Place]:
        """Join the queue: `with queue.enter() as place: for ahead in place: ...`.

        Iterating yields the number of callers ahead at least every REPORT_SECONDS, and ends with admission. Leaving
        the block leaves the queue, admitted or not. Raises GPTError once the queue is closed.
        """
        place = Place(self)
        self.check_open()
        self.join(place)
        try:
            yield place
        finally:
            self.leave(place)

    def close(self) -> None:
        """Admit no new callers: who waits for the first time, and who comes, gets a GPTError."""
        with self._lock:
            self.closed = True
            for place in self._places:
                if not place.was_admitted:
                    place.changed.set()

    def check_open(self) -> None:
        """Raise GPTError if the queue is closed."""
        if self.closed:
            raise GPTError("admission.closed", "the server is about to restart: try again in a minute")

    def join(self, place: Place) -> None:
        """Put a place at the end of the queue, unless it is in the queue."""
        with self._lock:
            if place not in self._places:
                self._places.append(place)
                self._admit()

    def leave(self, place: Place) -> None:
        """Remove a place from the queue if it is there."""
        with self._lock:
            if place in self._places:
                self._places.remove(place)
                place.changed.clear()
                self._admit()

    def n_ahead(self, place: Place) -> int:
        """Number of callers that must leave before this one is admitted, at most 0 if it is."""
        with self._lock:
            return self._places.index(place) - self.limit + 1

    def requeue(self, place: Place) -> bool:
        """Give the place of an admitted caller to those who wait; False if nobody does."""
        if self.n_waiting == 0:
            return False
        self.leave(place)
        self.join(place)
        return True

    def _admit(self) -> None:
        for place in self._places[: self.limit]:
            place.changed.set()


class Place:
    """A caller's place in an admission queue. changed: set when it is admitted; was_admitted: whether it ever was."""

    def __init__(self, queue: AdmissionQueue) -> None:
        self.changed, self.was_admitted = threading.Event(), False
        self._queue, self._n_tokens, self._rests = queue, 0, False

    def __iter__(self) -> Iterator[int]:
        self._queue.join(self)
        while (ahead := self._queue.n_ahead(self)) > 0:
            yield ahead
            self.changed.wait(REPORT_SECONDS)
            if not self.was_admitted:
                self._queue.check_open()
        self.was_admitted = True

    def after_token(self) -> Iterator[int]:
        """Call after each token, and iterate as over the place: after TURN_TOKENS, callers who wait go first."""
        self._n_tokens += 1
        if self._rests or (self._n_tokens % TURN_TOKENS == 0 and self._queue.requeue(self)):
            self._rests = False
            yield from self

    def rest(self) -> None:
        """Leave the queue until `after_token` if others wait: for a caller that needs no token yet."""
        if self._queue.n_waiting > 0:
            self._rests = True
            self._queue.leave(self)
