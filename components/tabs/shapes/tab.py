"""The Shapes tab: the size of any GPT configuration, and a model with random weights beside a trained one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import gradio as gr

from components.cards.card import Card
from components.events import Events
from components.kit import card, column, columns
from components.state.adoption import load_with_progress
from components.state.session import Session
from components.tabs.shapes.building import building_section
from components.tabs.shapes.size import Chosen, settings_section, size_section, tab
from gpt import Generation
from gpt.experiments.random_models import RandomModels


def open_tab(session: Session) -> Iterator[None]:
    """Load the chosen model if its configuration is needed. Errors are shown next to the model menu."""
    is_loaded = session.loaded is not None and session.loaded.name == session.model
    if is_loaded or session.state(Chosen).choice is not None:
        return
    with suppress(ValueError):
        yield from load_with_progress(session, session.model)


def shapes_card(models: RandomModels, example: Generation | None) -> Callable[[], Card]:
    """Return the tab's card. example: shown beside random output until something is built."""
    right = column(size_section(), building_section(models, example), min_width=320)
    return card("shapes", columns(settings_section(), right, classes="gb-shapes"), classes="")


def build_shapes(events: Events, opened: gr.Tab, example: Generation) -> None:
    """Build and wire the tab. example: the page's first text."""
    tab.build(events, shapes_card(RandomModels(), example))
    events.on(opened.select, open_tab, queue="model")
