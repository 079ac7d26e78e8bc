"""Handler that switches to a model trained on texts like the one in the box."""

from __future__ import annotations

from collections.abc import Iterator

from components.state.knowledge import fitting_model
from components.state.session import Session
from components.tabs.playground.handlers.generation import pick_model
from gpt import list_models


def prepare_fitting(session: Session) -> Iterator[None]:
    """Prepare to generate with the first listed model that fits the text."""
    name = fitting_model(list_models(), session.next_prompt)
    if name is not None:
        yield from pick_model(session, name)
