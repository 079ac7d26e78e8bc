"""The one place where whatever writes with a model waits for its turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from components.state.session import Session
from components.state.snapshot import Message
from gpt import LoadedModel


@contextmanager
def admitted(session: Session, loaded: LoadedModel) -> Iterator[Iterator[None]]:
    """`with admitted(session, loaded) as waiting: yield from waiting; ...`: yields while others are ahead of
    this visitor, with their number in `session.progress`. The place is given up at the end of the block."""
    with loaded.engine.admission.enter() as ahead:
        yield _waiting(session, ahead)


def _waiting(session: Session, ahead: Iterator[int]) -> Iterator[None]:
    try:
        for before in ahead:
            session.progress = Message("status.waiting", {"before": before})
            yield
    finally:
        session.progress = None
