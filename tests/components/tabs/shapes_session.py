"""Shared by the tests of the Shapes tab: tiny configurations, a session, and the data of all its views."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from components.state.session import Session
from components.tabs.shapes.size import tab
from components.tabs.shapes.tab import shapes_card
from gpt import Generation, GPTConfig, get_model
from gpt.experiments.random_models import RandomModels
from tests.components.drawing import Drawn

TINY = GPTConfig(vocab_size=97, block_size=20, n_layer=3, n_head=3, n_embd=12)
SMALL = replace(TINY, vocab_size=5000, block_size=64)
PROMPT = "The <b>dog</b> and"


def new_session() -> Session:
    return Session(Generation(get_model(), PROMPT), PROMPT)


def drawn(session: Session, models: RandomModels | None = None, example: Generation | None = None) -> dict[str, Any]:
    """Return the data of each view of a newly opened page."""
    session.sent.clear()
    views = Drawn(session, tab, shapes_card(models or RandomModels(), example)).update()
    return {name.removeprefix("shape-"): data for name, data in views.items() if name.startswith("shape-")}
