"""Shared by the tests of the Compare tab: a session with short runs, and the data of all its views."""

from __future__ import annotations

from typing import Any

import pytest

from components.state.session import Session
from components.tabs.compare import beams, columns
from components.tabs.compare.beams import Beams
from components.tabs.compare.columns import Compare
from components.tabs.compare.tab import PARTS, tab
from gpt import Generation, get_model
from tests.components.drawing import Drawn

PROMPT = "Once upon a time, there was a little girl named Lily. She"


def new_session(monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(columns, "TOKENS_PER_SECOND", 1e9)
    monkeypatch.setattr(columns, "UPDATE_SECONDS", 0)
    monkeypatch.setattr(beams, "STEP_SECONDS", 0)
    opened = Session(Generation(get_model(), PROMPT), PROMPT)
    opened.tab = "compare"
    opened.change(Compare, length=5)
    opened.change(Beams, width=2, length=4)
    return opened


def drawn(session: Session) -> dict[str, Any]:
    """Return the data of both parts' views, each part opened anew."""
    views, opened = dict[str, Any](), session.state(Compare).part
    for part in PARTS:
        session.change(Compare, part=part)
        session.sent.clear()
        views |= Drawn(session, tab).update()
    session.change(Compare, part=opened)
    return views
