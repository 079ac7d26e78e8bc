"""What the tests of Write's handlers share: a session, runs of a handler, and the data of a view."""

from __future__ import annotations

import json
from collections.abc import Iterator

from components.state.example import opening
from components.state.session import Session
from components.tabs.playground.handlers import generation, selection, typing
from components.tabs.playground.views import SHARED_VIEWS, VIEWS
from gpt import Generation


def new_session(written: Generation) -> Session:
    """A session with a copy of the text, and short runs with a fixed seed."""
    opened = opening(written.copy())
    selection.set_values(("length", "seed", "pace"), opened, 3, "1", 0)
    return opened


def run(steps: Iterator[None]) -> int:
    """How many frames a handler asked for."""
    return sum(1 for _ in steps)


def box(session: Session, text: str | None) -> str:
    """What the page sends of its box after a key; None: nothing was typed."""
    return json.dumps({"text": text or "", "edited": session.edited + (text is not None)})


def type_in(session: Session, text: str) -> None:
    run(typing.type_text(session, box(session, text)))


def write(session: Session, text: str | None) -> list[int]:
    """Type a text and write on."""
    run(generation.written(generation.prepare)(session, box(session, text)))
    return ids(session)


def ids(session: Session) -> list[int]:
    return list(session.document.ids)


def drawn(session: Session, name: str) -> dict:
    return next(view for view in (*SHARED_VIEWS, *VIEWS) if view.name == name).draw(session.snapshot())
