"""Shared by the tests of the Compare tab: a session with short runs, and the data of all its views."""

from __future__ import annotations

from typing import Any

import pytest

from components.state.session import Session
from components.tabs.compare.handlers import beam_search, columns
from components.tabs.compare.state import BeamState, CompareState
from components.tabs.compare.views import VIEWS
from gpt import Generation, get_model
from tests.components.drawing import in_its_language

PROMPT = "Once upon a time, there was a little girl named Lily. She"


def new_session(monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(columns, "TOKENS_PER_SECOND", 1e9)
    monkeypatch.setattr(columns, "UPDATE_SECONDS", 0)
    monkeypatch.setattr(beam_search, "STEP_SECONDS", 0)
    opened = Session(Generation(get_model(), PROMPT), PROMPT)
    opened.tab = "compare"
    opened.change(CompareState, length=5)
    opened.change(BeamState, width=2, length=4)
    return opened


@in_its_language
def drawn(session: Session) -> dict[str, Any]:
    snapshot = session.snapshot()
    return {view.name: view.draw(snapshot) for view in VIEWS}
