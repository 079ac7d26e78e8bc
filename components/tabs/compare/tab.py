"""The Compare tab: builds and wires it."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from components.events import Events, clamp_js
from components.frame import model_choices
from components.localized import Localizer
from components.render import Control
from components.state.settings import LIMITS
from components.state.snapshot import Snapshot
from components.tabs.compare import layout
from components.tabs.compare.components import COLUMN_SETTINGS, BeamState, CompareComponents, CompareState
from components.tabs.compare.handlers import beam_search, columns
from components.tabs.compare.views import VIEWS
from components.tabs.compare.views.beam_search import picked
from gpt import list_models

NAME = "compare"


def build_compare(localizer: Localizer, events: Events, tab: gr.Tab, model: str) -> None:
    """Build and wire the tab; each part runs an example when it is first opened. model: the initial model of both
    columns."""
    prompt = layout.prompt(localizer)
    with gr.Tabs(elem_id="compare-parts"):
        with localizer.build(gr.Tab, {"label": "compare.sides"}, id="compare-sides"):
            parts = layout.columns(localizer, model)
        with localizer.build(gr.Tab, {"label": "compare.beams"}, id="compare-beams") as beams_tab:
            parts |= layout.beam_search(localizer)
    ui = CompareComponents(prompt=prompt, beams_tab=beams_tab, **parts)
    events.renderer.add(NAME, VIEWS, controls=_controls(ui))
    _wire_columns(ui, events, tab)
    _wire_beam_search(ui, events)


def _controls(ui: CompareComponents) -> list[Control]:
    """Components that the server changes."""

    def enabled(button: gr.Button, test: Any) -> Control:
        return Control(button, test, lambda s: {"interactive": test(s)})

    controls = [
        Control(ui.prompt, lambda s: s.state(CompareState).prompt, lambda s: {"value": s.state(CompareState).prompt}),
        Control(ui.right_prompt, lambda s: s.state(CompareState).prompts[1], _right_prompt),
        enabled(ui.generate, lambda s: not s.state(CompareState).generating),
        enabled(ui.stop, lambda s: s.state(CompareState).generating),
        enabled(ui.search, lambda s: not s.state(BeamState).searching),
        enabled(ui.stop_search, lambda s: s.state(BeamState).searching),
        enabled(ui.adopt, lambda s: not s.state(BeamState).searching and picked(s.state(BeamState)) is not None),
    ]
    for side, column in enumerate(ui.columns):
        controls.append(Control(column.model, _models, lambda s: {"choices": model_choices(s.language, s.own_models)}))
        controls.append(Control(column.model, partial(_model, side), lambda s, side=side: {"value": _model(side, s)}))
        for name in (*COLUMN_SETTINGS, "seed"):
            of = partial(_value, side, name)
            controls.append(Control(getattr(column, name), of, lambda s, of=of: {"value": of(s)}))
    return controls


def _right_prompt(s: Snapshot) -> dict[str, Any]:
    return {"value": s.state(CompareState).prompts[1]}


def _models(s: Snapshot) -> tuple[Any, ...]:
    return s.language, s.own_models, tuple(list_models())


def _model(side: int, s: Snapshot) -> str:
    return s.state(CompareState).columns[side].model or s.model


def _value(side: int, name: str, s: Snapshot) -> Any:
    return getattr(s.state(CompareState).columns[side], name)


def _wire_columns(ui: CompareComponents, events: Events, tab: gr.Tab) -> None:
    on, latest = events.on, {"trigger_mode": "always_last"}
    on(ui.prompt.input, columns.type_prompt, [ui.prompt], **latest)
    on(ui.right_prompt.input, columns.type_right_prompt, [ui.right_prompt], **latest)
    on(ui.length.input, columns.set_length, [ui.length], js=clamp_js(1, columns.MAX_LENGTH), **latest)
    for side, column in enumerate(ui.columns):
        for name in ("model", "seed"):
            control = getattr(column, name)
            on(control.input, partial(columns.set_value, side, name), [control], **latest)
        for name in COLUMN_SETTINGS:
            control, limit = getattr(column, name), LIMITS[name]
            js = clamp_js(limit.low, limit.high)
            on(control.input, partial(columns.set_value, side, name), [control], js=js, **latest)
        on(column.strip.select, partial(columns.select_token, side), [column.strip])
    on(ui.divergence.select, columns.select_bar, [ui.divergence])

    seeds = [column.seed for column in ui.columns]
    start_events = [ui.generate.click, *(seed.submit for seed in seeds)]
    typed = [ui.prompt, ui.right_prompt, *seeds]
    runs = [on(start_events, columns.generate_typed, typed, sets=seeds, queue="model")]
    opened = on(tab.select, columns.open_tab)
    runs.append(on(opened.success, columns.first_run, queue="model"))
    for name, button in ui.presets.items():
        filled = on(button.click, partial(columns.choose_preset, name))
        runs.append(on(filled.then, columns.generate, queue="model"))
    for run in runs:
        for ended in (run.then, run.failure):
            on(ended, columns.finish)
    on(ui.stop.click, columns.stop, cancels=runs)


def _wire_beam_search(ui: CompareComponents, events: Events) -> None:
    on = events.on
    for name, slider in (("width", ui.width), ("penalty", ui.penalty), ("length", ui.max_depth)):
        js = clamp_js(*beam_search.RANGES[name])
        on(slider.input, partial(beam_search.set_value, name), [slider], js=js, trigger_mode="always_last")
    runs = [
        on(ui.search.click, beam_search.search, [ui.prompt], queue="model"),
        on(ui.beams_tab.select, beam_search.first_search, queue="model"),
    ]
    on(ui.stop_search.click, beam_search.stop, cancels=runs)
    on(ui.tree.select, beam_search.choose, [ui.tree], trigger_mode="always_last")
    on(ui.adopt.click, beam_search.adopt)
