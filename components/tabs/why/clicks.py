"""What a click in the Why tab selects: a position, a cell of the lens, a head; the same in every tab."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from components.state.session import Session
from components.tabs.why.answers import Memory, Values
from gpt import Generation

if TYPE_CHECKING:
    from components.tabs.why.tab import Why


def choose_token(ui: Why, values: Values, sent: Values) -> None:
    """A click on a token of the strip selects its position in every tab."""
    _select(values[ui.playground.session], position=sent.get("index"))


def choose_cell(ui: Why, values: Values, sent: Values) -> None:
    """A click on a cell of the lens opens it and selects its position in every tab."""
    memory: Memory = values[ui.memory]
    column, row = sent.get("x"), sent.get("y")
    if memory.reading is None or type(column) is not int or type(row) is not int:
        return
    memory.row = row
    _select(values[ui.playground.session], position=memory.reading.first + column)


def choose_head(ui: Why, values: Values, sent: Values) -> None:
    """A click on a head of a map selects it in every tab."""
    _select(values[ui.playground.session], layer=sent.get("y"), head=sent.get("x"))


def choose_bar(ui: Why, values: Values, sent: Values) -> None:
    """The same for the bar of a head; the other bars are no heads."""
    place = sent.get("customdata")
    if isinstance(place, list) and len(place) == 2:
        _select(values[ui.playground.session], layer=place[0], head=place[1])


def _select(session: Session, **chosen: object) -> None:
    """Change the shared selection, unless something in it does not exist."""
    document: Generation | None = session.document
    if document is None:
        return
    config = document.loaded.model.config
    limits = {"position": document.n_read, "layer": config.n_layer, "head": config.n_head}
    if all(type(value) is int and 0 <= value < limits[name] for name, value in chosen.items()):
        session.selection = replace(session.selection, **chosen)
