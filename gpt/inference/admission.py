"""First-in, first-out admission queue with a concurrency limit. Admitted callers take turns while others wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from gpt.errors import GPTError

REPORT_SECONDS = 0.5  # interval between reports to a waiting caller
TURN_TOKENS = 16  # tokens per turn, after which waiting callers go first


class AdmissionQueue:
    """Admit up to `limit` callers at a time. The others wait in order of arrival."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.closed = False
        self._places: list[Place] = []  # admitted callers, followed by waiting callers
        self._lock = threading.Lock()

    @property
    def n_admitted(self) -> int:
        """Number of admitted callers."""
        return min(self.limit, len(self._places))

    @property
    def n_waiting(self) -> int:
        """Number of waiting callers."""
        return max(0, len(self._places) - self.limit)

    @contextmanager
    def enter(self) -> Iterator[Place]:
        """Join the queue: `with queue.enter() as place: for ahead in place: ...`.

        Iteration yields the number of callers ahead, at least every REPORT_SECONDS, and ends on admission. When the
        block ends, the caller leaves the queue, even if it was never admitted. Raises GPTError if the queue is closed.
        """
        place = Place(self)
        self.check_open()
        self.join(place)
        try:
            yield place
        finally:
            self.leave(place)

    def close(self) -> None:
        """Stop admitting callers. New callers, and those still waiting for their first turn, get a GPTError."""
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
        """Append a place to the queue, unless the queue already contains it."""
        with self._lock:
            if place not in self._places:
                self._places.append(place)
                self._admit()

    def leave(self, place: Place) -> None:
        """Remove a place if it is in the queue."""
        with self._lock:
            if place in self._places:
                self._places.remove(place)
                place.changed.clear()
                self._admit()

    def n_ahead(self, place: Place) -> int:
        """Return how many callers must leave before this one is admitted; 0 or less if it has already been admitted."""
        with self._lock:
            return self._places.index(place) - self.limit + 1

    def requeue(self, place: Place) -> bool:
        """Move an admitted caller to the end of the queue. Returns False if nobody is waiting."""
        if self.n_waiting == 0:
            return False
        self.leave(place)
        self.join(place)
        return True

    def _admit(self) -> None:
        for place in self._places[: self.limit]:
            place.changed.set()


class Place:
    """A caller's place in an admission queue.

    changed: event that is set on admission. was_admitted: whether the caller has ever been admitted."""

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
        """Let waiting callers go first after every TURN_TOKENS tokens.

        Call this after each token and iterate over the result, just as over the place itself."""
        self._n_tokens += 1
        if self._rests or (self._n_tokens % TURN_TOKENS == 0 and self._queue.requeue(self)):
            self._rests = False
            yield from self

    def rest(self) -> None:
        """Give up the slot to waiting callers while no token is needed. `after_token` rejoins the queue."""
        if self._queue.n_waiting > 0:
            self._rests = True
            self._queue.leave(self)
