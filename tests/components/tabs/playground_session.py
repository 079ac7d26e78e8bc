"""Shared by the tests of Write: a session, runs of a handler, and the data of a picture."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from components.state.example import opening
from components.state.reads import Reads
from components.state.session import Session
from components.tabs.playground import generation, tab
from components.tabs.playground.box import take_typed, type_text
from gpt import Generation
from tests.components.drawing import in_its_language

PARTS = [*tab._write(lambda session: None), *tab._attention(), *tab._settings(), *tab._text()]
PICTURES = {each.name: each.draw for part in PARTS for each in part.everything() if each.draw is not None}


def new_session(written: Generation) -> Session:
    """Create a session with a copy of the text and with short runs under a fixed seed."""
    opened = opening(written.copy())
    set_run(opened)
    return opened


def set_run(session: Session) -> None:
    """Make runs short, under a fixed seed."""
    session.settings = replace(session.settings, length=3, seed="1", pace=0)


def run(steps: Iterator[None]) -> int:
    """Run a handler and return the number of frames that it requested."""
    return sum(1 for _ in steps)


def box(session: Session, text: str, run: int = 0) -> dict[str, Any]:
    """Return what the page sends of its box after a key press."""
    return {"text": text, "edited": session.edited + 1, "run": run}


def type_in(session: Session, text: str, run: int = 0) -> None:
    """Type a text. A single undo takes back consecutive edits of the same run."""
    deque(type_text(session, box(session, text, run)))


def write(session: Session, text: str | None) -> list[int]:
    """Type a text, unless it is None, and continue it."""
    if text is not None:
        take_typed(session, box(session, text))
    run(generation.go_on(session))
    return ids(session)


def ids(session: Session) -> list[int]:
    return list(session.document.ids)


@in_its_language
def drawn(session: Session, name: str) -> dict:
    return PICTURES[name](Reads(session.snapshot()))
