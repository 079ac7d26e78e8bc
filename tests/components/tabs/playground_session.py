"""Shared by the tests of Write's handlers: a session, runs of a handler, and the data of a view."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator

from components.state.example import opening
from components.state.session import Session
from components.tabs.playground.handlers import generation, selection, typing
from components.tabs.playground.views import SHARED_VIEWS, VIEWS
from gpt import Generation
from tests.components.drawing import in_its_language


def new_session(written: Generation) -> Session:
    """Create a session with a copy of the text and with short runs under a fixed seed."""
    opened = opening(written.copy())
    selection.set_values(("length", "seed", "pace"), opened, 3, "1", 0)
    return opened


def run(steps: Iterator[None]) -> int:
    """Run a handler and return the number of frames that it requested."""
    return sum(1 for _ in steps)


def box(session: Session, text: str | None, run: int = 0) -> str:
    """Return what the page sends of its box after a key press. None means that nothing was typed."""
    return json.dumps({"text": text or "", "edited": session.edited + (text is not None), "run": run})


def type_in(session: Session, text: str, run: int = 0) -> None:
    """Type a text. A single undo takes back consecutive edits of the same run."""
    deque(typing.type_text(session, box(session, text, run)))


def write(session: Session, text: str | None) -> list[int]:
    """Type a text and continue it."""
    run(generation.written(generation.prepare)(session, box(session, text)))
    return ids(session)


def ids(session: Session) -> list[int]:
    return list(session.document.ids)


@in_its_language
def drawn(session: Session, name: str) -> dict:
    return next(view for view in (*SHARED_VIEWS, *VIEWS) if view.name == name).draw(session.snapshot())
