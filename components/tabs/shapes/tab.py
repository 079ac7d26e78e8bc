"""The Shapes tab: the size of any GPT configuration, and a model with random weights beside a trained one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from components.cards.card import Card
from components.events import Events
from components.kit import card, column, columns
from components.render import Analysis
from components.state.loading import load_with_progress
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.shapes.building import building_section
from components.tabs.shapes.size import Chosen, settings_section, size_section, tab
from gpt import Generation
from gpt.experiments.random_models import RandomModels


def missing(s: Snapshot) -> str | None:
    """Return the name of the chosen model if its configuration is needed but it is not loaded yet."""
    there = s.loaded is not None and s.loaded.name == s.model
    return None if there or s.state(Chosen).choice is not None else s.model


def load(session: Session) -> Iterator[None]:
    """Load the chosen model. Errors are shown next to the model menu."""
    with suppress(ValueError):
        yield from load_with_progress(session, session.model)


def shapes_card(models: RandomModels, example: Generation | None) -> Callable[[], Card]:
    """Return the tab's card. example: shown beside random output until something is built."""
    right = column(size_section(), building_section(models, example), min_width=320)
    return card("shapes", columns(settings_section(), right, classes="gb-shapes"), classes="")


def build_shapes(events: Events, example: Generation) -> None:
    """Build and wire the tab. example: the page's first text."""
    tab.build(events, shapes_card(RandomModels(), example), analysis=Analysis(missing, load, computes=False))
