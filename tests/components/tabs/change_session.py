"""Shared by the tests of Change it: a session with a measured text, and the contents of its views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from components.state.session import Session
from components.tabs.change.handlers.measurement import ANALYSIS
from components.tabs.change.views import VIEWS
from gpt import Generation, SamplingParams
from tests.components.drawing import in_its_language
from tests.gpt.fake_models import tiny_model

PARAMS = SamplingParams(temperature=2.0, seed=3)
DRAWN = {view.name: view for view in VIEWS}


def generated() -> Generation:
    """A text whose second part was generated."""
    made = Generation(tiny_model(), "the cat sat")
    list(made.steps(PARAMS, 6))
    made.read()
    return made


def analysed(session: Session) -> Session:
    """Run the analyses that the page requests while the tab is open."""
    done = None
    while (wanted := ANALYSIS.wanted(session.snapshot())) is not None:
        assert wanted != done  # otherwise the page would request it forever
        done = wanted
        finish(ANALYSIS.run(session))
    return session


def finish(steps: Iterator[None] | None) -> None:
    for _ in steps or ():
        pass


@in_its_language
def drawn(session: Session, name: str) -> dict[str, Any]:
    return DRAWN[f"change-{name}"].draw(session.snapshot())


def said(session: Session, name: str) -> str:
    return drawn(session, name)["text"]


def other_model() -> Generation:
    made = Generation(tiny_model(n_layer=1, seed=9), "the dog")
    made.read()
    return made
