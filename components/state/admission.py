"""Waiting in the admission queue of a model, with a progress message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from components.state.session import Session
from components.state.snapshot import Message
from gpt import LoadedModel


@contextmanager
def admitted(session: Session, loaded: LoadedModel) -> Iterator[Iterator[None]]:
    """Context manager for a place in the admission queue; its value iterates while others are ahead.

    `with admitted(session, loaded) as waiting: yield from waiting; ...` keeps the number of those ahead in
    `session.progress`. The place is released at the end of the block.
    """
    with loaded.engine.admission.enter() as ahead:
        yield _waiting(session, ahead)


def _waiting(session: Session, ahead: Iterator[int]) -> Iterator[None]:
    try:
        for before in ahead:
            session.progress = Message("status.waiting", {"before": before})
            yield
    finally:
        session.progress = None
