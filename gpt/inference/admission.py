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
        self._tickets: list[Ticket] = []  # admitted callers, followed by waiting callers
        self._resting = set[Ticket]()  # admitted callers that have given up their slot for a while
        self._lock = threading.Lock()

    @property
    def n_admitted(self) -> int:
        """Number of admitted callers, including those that rest."""
        return min(self.limit, len(self._tickets)) + len(self._resting)

    @property
    def n_waiting(self) -> int:
        """Number of waiting callers."""
        return max(0, len(self._tickets) - self.limit)

    @contextmanager
    def enter(self) -> Iterator[Place]:
        """Join the queue: `with queue.enter() as place: for ahead in place: ...`. See `enter`."""
        with enter(self) as place:
            yield place

    def close(self) -> None:
        """Stop admitting callers. New callers, and those still waiting for their first turn, get a GPTError."""
        with self._lock:
            self.closed = True
            for ticket in self._tickets:
                if not ticket.was_admitted:
                    ticket.changed.set()

    def check_open(self) -> None:
        """Raise GPTError if the queue is closed."""
        if self.closed:
            raise GPTError("admission.closed")

    def join(self, ticket: Ticket) -> None:
        """Append a ticket to the queue, unless the queue already contains it."""
        with self._lock:
            self._resting.discard(ticket)
            if ticket not in self._tickets:
                self._tickets.append(ticket)
                self._admit()

    def leave(self, ticket: Ticket, *, rests: bool = False) -> None:
        """Remove a ticket if it is in the queue. rests: whether it will join again."""
        with self._lock:
            self._resting.discard(ticket)
            if ticket in self._tickets:
                self._tickets.remove(ticket)
                ticket.changed.clear()
                self._admit()
                if rests:
                    self._resting.add(ticket)

    def n_ahead(self, ticket: Ticket) -> int:
        """Return how many callers must leave before this one is admitted; 0 or less if it has already been admitted."""
        with self._lock:
            return self._tickets.index(ticket) - self.limit + 1

    def _admit(self) -> None:
        for ticket in self._tickets[: self.limit]:
            ticket.changed.set()


class Ticket:
    """A caller in a queue. changed: set on admission. was_admitted: whether the caller has ever been admitted."""

    def __init__(self) -> None:
        self.changed, self.was_admitted = threading.Event(), False


class Place:
    """A caller's place in one or more queues. It needs a slot in each of them at the same time.

    Slots are taken in an order that all callers share and given up together, so no two callers wait for each other.
    """

    def __init__(self, queues: tuple[AdmissionQueue, ...]) -> None:
        self._tickets = {queue: Ticket() for queue in sorted(queues, key=id)}
        self._n_tokens = 0
        queue, ticket = next(iter(self._tickets.items()))
        queue.join(ticket)

    def __iter__(self) -> Iterator[int]:
        for queue, ticket in self._tickets.items():
            queue.join(ticket)
            while (ahead := queue.n_ahead(ticket)) > 0:
                yield ahead
                ticket.changed.wait(REPORT_SECONDS)
                if not ticket.was_admitted:
                    queue.check_open()
            ticket.was_admitted = True

    def after_token(self) -> Iterator[int]:
        """Let waiting callers go first after every TURN_TOKENS tokens, and take a slot again after a rest.

        Call this after each token and iterate over the result, just as over the place itself."""
        self._n_tokens += 1
        if self._n_tokens % TURN_TOKENS == 0 and any(queue.n_waiting for queue in self._tickets):
            self.rest()
        yield from self

    def rest(self) -> None:
        """Give up the slots while no token is needed. `after_token` joins the queues again."""
        for queue, ticket in self._tickets.items():
            queue.leave(ticket, rests=True)

    def leave(self) -> None:
        """Leave the queues."""
        for queue, ticket in self._tickets.items():
            queue.leave(ticket)


@contextmanager
def enter(*queues: AdmissionQueue) -> Iterator[Place]:
    """Join queues: `with enter(queue) as place: for ahead in place: ...`.

    Iteration yields the number of callers ahead, at least every REPORT_SECONDS, and ends on admission to all queues.
    The caller leaves them when the block ends, even if it was never admitted. Raises GPTError if a queue is closed.
    """
    for queue in queues:
        queue.check_open()
    place = Place(queues)
    try:
        yield place
    finally:
        place.leave()
