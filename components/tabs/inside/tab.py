"""The Inside tab: four parts with one selection; builds and wires it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

import gradio as gr

from components.events import Events
from components.limits import MAX_VISITOR_BYTES
from components.localized import Localizer
from components.render import Control
from components.state.snapshot import Snapshot
from components.tabs.inside import handlers, layout
from components.tabs.inside.analysis import analysis, shows_skeleton
from components.tabs.inside.components import InsideComponents, InsideState, Part
from components.tabs.inside.views import VIEWS
from components.widgets.film import film
from components.widgets.sentence import sentence
from components.widgets.widget import placed

NAME = "inside"
PARTS: dict[Part, Callable[[Localizer], dict[str, Any]]] = {
    "machine": layout.machine,
    "one_head": layout.one_head,
    "stream": layout.stream,
    "embeddings": layout.embeddings,
}


def build_inside(localizer: Localizer, events: Events, visitor_memory: int = MAX_VISITOR_BYTES) -> InsideComponents:
    """Build and wire the tab. visitor_memory: limit in bytes of the recording of one visitor; of a longer text the
    beginning is shown."""
    parts: dict[str, Any] = {}
    tabs: dict[Part, gr.Tab] = {}
    placed(sentence(kind="notice", elem_id="inside-notice", view="inside-notice"))
    parts["film"] = placed(film(elem_id="film", view="film"))
    with gr.Tabs(elem_id="inside-parts") as parts["parts"]:
        for name, build in PARTS.items():
            with localizer.build(gr.Tab, {"label": f"inside.{name}"}, id=_tab_id(name)) as tabs[name]:
                parts |= build(localizer)
    parts |= layout.trace_file(localizer)
    ui = InsideComponents(**{field.name: parts[field.name] for field in fields(InsideComponents)})
    events.renderer.add(NAME, VIEWS, analysis(visitor_memory), controls=_controls(ui))
    _wire(ui, tabs, events)
    return ui


def _controls(ui: InsideComponents) -> list[Control]:
    """Components that the server changes."""

    def state(s: Snapshot) -> InsideState:
        return s.state(InsideState)

    return [
        Control(ui.parts, lambda s: state(s).part, lambda s: {"selected": _tab_id(state(s).part)}),
        Control(ui.model, shows_skeleton, lambda s: {"value": "skeleton" if shows_skeleton(s) else "whole"}),
        Control(ui.attention_view, lambda s: state(s).attention_view, lambda s: {"value": state(s).attention_view}),
    ]


def _wire(ui: InsideComponents, tabs: dict[Part, gr.Tab], events: Events) -> None:
    latest = {"trigger_mode": "always_last"}
    for name, tab in tabs.items():
        events.on(tab.select, partial(handlers.open_part, name), **latest)
    events.on(ui.flow.select, handlers.select_in_flow, [ui.flow], **latest)
    for widget in (ui.heads, ui.layers):
        events.on(widget.select, handlers.select, [widget], **latest)
    for widget in (ui.stages, ui.lines):
        events.on(widget.select, handlers.select_pair, [widget], **latest)
    for widget in (ui.norms, ui.shares):
        events.on(widget.select, handlers.select_layer, [widget], **latest)
    events.on(ui.tokens.select, handlers.select_token, [ui.tokens], **latest)
    events.on(ui.heads.input, handlers.magnify_head, [ui.heads], **latest)
    events.on(ui.model.input, handlers.choose_model, [ui.model], **latest)
    events.on(ui.attention_view.input, handlers.choose_attention_view, [ui.attention_view], **latest)
    events.on(ui.follow.click, handlers.open_film)
    events.on(ui.film.input, handlers.show_beat, [ui.film])
    events.on(ui.film.select, handlers.leave_film, [ui.film])
    events.on(ui.save.click, handlers.save_trace, queue="model")


def _tab_id(part: Part) -> str:
    return f"inside-{part.replace('_', '-')}"
