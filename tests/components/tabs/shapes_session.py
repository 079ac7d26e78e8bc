"""Shared by the tests of the Shapes tab: tiny configurations, a session, and the data of all its views."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from components.state.session import Session
from components.tabs.shapes.views import VIEWS
from components.widgets.encoding import to_json
from gpt import Generation, GPTConfig, get_model
from tests.components.drawing import in_its_language

TINY = GPTConfig(vocab_size=97, block_size=20, n_layer=3, n_head=3, n_embd=12)
SMALL = replace(TINY, vocab_size=5000, block_size=64)
PROMPT = "The <b>dog</b> and"


def new_session() -> Session:
    return Session(Generation(get_model(), PROMPT), PROMPT)


@in_its_language
def drawn(session: Session) -> dict[str, Any]:
    """Return the data of each view as sent to the browser."""
    snapshot = session.snapshot()
    return json.loads(to_json({view.name.removeprefix("shape-"): view.draw(snapshot) for view in VIEWS}))
