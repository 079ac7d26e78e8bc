"""The button of a lesson: it opens the place in the app where the system is at work, and sets what belongs to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from components.legacy import Playground
from components.panels.shape_settings import RANGES, SWITCHES, values_of
from components.tabs.lessons.course import Place
from components.tabs.shapes import tab as shapes

Values = dict[Any, Any]


@dataclass(frozen=True)
class Rooms:
    """The tabs, and those panels that a lesson may set."""

    tabs: gr.Tabs
    playground: Playground
    shapes: shapes.ShapeLab

    def inputs(self) -> set[Any]:
        """Everything that is read when a place is set."""
        return self.playground.inputs() | self.shapes.controls()

    def outputs(self) -> list[Any]:
        """Everything that setting a place may change."""
        ui, lab = self.playground, self.shapes
        return [*ui.outputs(), *(getattr(lab, name) for name in (*RANGES, *SWITCHES)), *lab.numbers()]


def select_head(rooms: Rooms, place: Place, layer: int, head: int, values: Values) -> None:
    """Selection at the lesson's layer and head, where the place wants it and the visitor's model has them."""
    session = values[rooms.playground.session]
    if place.look and session.document is not None:
        look = replace(session.selection, layer=layer, head=head)
        session.selection = look.fitting(session.document.loaded.model.config, position=look.position)


def set_place(rooms: Rooms, place: Place, values: Values) -> Values:
    """The controls and pictures of a place, as its lesson wants them."""
    update: Values = {}
    ui, lab = rooms.playground, rooms.shapes
    session = values[ui.session]
    for name, value in place.settings.items():
        session.settings = session.settings.with_value(name, value)
    update |= ui.shown(session)
    if place.shape is not None:
        given = values_of(place.shape) | {"skeleton": place.skeleton}
        for name in SWITCHES:
            update[getattr(lab, name)] = given[name]
        for name, limit in RANGES.items():
            update[getattr(lab, name)] = gr.update(value=given[name], **limit.around(given[name]))
        update |= shapes.show(lab, values | {getattr(lab, name): value for name, value in given.items()})
    return update
