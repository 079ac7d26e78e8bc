"""First-in, first-out admission queue with a concurrency limit. Admitted callers take turns while others wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from gpt.background import release_threads
from gpt.errors import require

REPORT_SECONDS = 0.5  # interval between reports to a waiting caller
TURN_TOKENS = 16  # tokens per turn, after which waiting callers go first


class AdmissionQueue:
    """Admit up to `limit` callers at a time. The others wait in order of arrival."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.closed = False
        self._places: list[Place] = []  # admitted callers, followed by waiting callers
        self._resting = set[Place]()  # admitted callers that have given up their slot for a while
        self._lock = threading.Lock()

    @property
    def n_admitted(self) -> int:
        """Number of admitted callers, including those that rest."""
        return min(self.limit, len(self._places)) + len(self._resting)

    @property
    def n_waiting(self) -> int:
        return max(0, len(self._places) - self.limit)

    def enter(self) -> Place:
        """Join the queue: `with queue.enter() as place: for ahead in place: ...`."""
        return Place(self)

    def close(self) -> None:
        """Stop admitting callers. New callers, and those still waiting for their first turn, get a GPTError."""
        with self._lock:
            self.closed = True
            for place in self._places:
                place.changed.set()

    def join(self, place: Place) -> None:
        """Append a caller to the queue, unless it is in the queue already."""
        with self._lock:
            self._resting.discard(place)
            if place not in self._places:
                self._places.append(place)

    def leave(self, place: Place, *, rests: bool = False) -> None:
        """Remove a caller if it is in the queue. rests: whether it will join again."""
        with self._lock:
            self._resting.discard(place)
            if place in self._places:
                self._places.remove(place)
                self._resting |= {place} if rests else set()
                for admitted in self._places[: self.limit]:
                    admitted.changed.set()

    def n_ahead(self, place: Place) -> int:
        """Return how many callers must leave before this one is admitted; 0 or less if it has already been admitted."""
        with self._lock:
            return self._places.index(place) - self.limit + 1


class Place:
    """A caller's place in one or more queues: `with Place(queue) as place: for ahead in place: ...`.

    Iteration yields the number of callers ahead, at least every REPORT_SECONDS, and ends on admission to all queues.
    The caller leaves them when the block ends, even if it was never admitted. It needs a slot in each of them at the
    same time. Slots are taken in an order that all callers share and given up together, so no two callers wait for each
    other. Raises GPTError if a queue is closed.
    changed: set when a queue may admit the caller, or has been closed.
    """

    def __init__(self, *queues: AdmissionQueue) -> None:
        for queue in queues:
            require(not queue.closed, "admission.closed")
        self._queues = sorted(set(queues), key=id)
        self._n_tokens, self._was_admitted = 0, False
        self.changed = threading.Event()
        self._queues[0].join(self)

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *error: object) -> None:
        for queue in self._queues:
            queue.leave(self)

    def __iter__(self) -> Iterator[int]:
        for queue in self._queues:
            queue.join(self)
            while (ahead := queue.n_ahead(self)) > 0:
                yield ahead
                self.changed.wait(REPORT_SECONDS)
                self.changed.clear()
                require(self._was_admitted or not queue.closed, "admission.closed")
        self._was_admitted = True

    def after_token(self) -> Iterator[int]:
        """Let waiting callers go first after every TURN_TOKENS tokens, and take a slot again after a rest.

        Call this after each token and iterate over the result, just as over the place itself."""
        self._n_tokens += 1
        if self._n_tokens % TURN_TOKENS == 0 and any(queue.n_waiting for queue in self._queues):
            self.rest()
        yield from self

    def rest(self) -> None:
        """Give up the slots while no token is needed. `after_token` joins the queues again."""
        release_threads()
        for queue in self._queues:
            queue.leave(self, rests=True)
