"""The one place where whatever writes with a model waits for its turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from components.state.session import Message, Session
from gpt import LoadedModel


@contextmanager
def admitted(session: Session, loaded: LoadedModel) -> Iterator[Iterator[None]]:
    """`with admitted(session, loaded) as waiting: yield from waiting; ...`: yields while others are before this
    visitor, `session.progress` saying how many. The place is given back at the end of the block."""
    with loaded.engine.seats.taken() as places:
        yield _waiting(session, places)


def _waiting(session: Session, places: Iterator[int]) -> Iterator[None]:
    try:
        for before in places:
            session.progress = Message("status.waiting", {"before": before})
            yield
    finally:
        session.progress = None
