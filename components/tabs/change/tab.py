"""The Change tab: builds and wires it."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

import gradio as gr

from components.events import Events
from components.localized import Localizer
from components.render import Control
from components.state.snapshot import Snapshot
from components.tabs.change import layout
from components.tabs.change.components import PROMPT_PAIRS, ChangeComponents, ChangeState, is_stale
from components.tabs.change.experiments import EXPERIMENTS
from components.tabs.change.handlers import editing, generation, patching
from components.tabs.change.handlers.measurement import ANALYSIS
from components.tabs.change.views import VIEWS
from components.tabs.change.views.patching import answer_picker, picker_inputs, shown_sweep
from components.tabs.change.views.texts import code, code_inputs

NAME = "change"


def build_change(localizer: Localizer, events: Events) -> ChangeComponents:
    """Build and wire the tab."""
    parts: dict[str, Any] = {}
    with gr.Row(elem_classes="gb-change"):
        with gr.Column(min_width=300, scale=3):
            parts |= layout.editing_card(localizer) | layout.texts_card(localizer) | layout.divergence_card(localizer)
        layout.effect_column(localizer)
    parts |= layout.patching_card(localizer)
    ui = ChangeComponents(**{field.name: parts[field.name] for field in fields(ChangeComponents)})
    events.renderer.add(NAME, VIEWS, ANALYSIS, controls=_controls(ui))
    _wire(ui, events)
    return ui


def _controls(ui: ChangeComponents) -> list[Control]:
    """Components that the server changes."""

    def has(component: gr.Button, task: str, name: str, *, when: bool = True) -> Control:
        """A control that sets the property `name` of a button to `when` while the task runs."""

        def value(s: Snapshot) -> bool:
            return (getattr(s.state(ChangeState), task) is not None) == when

        return Control(component, value, lambda s: {name: value(s)})

    def state(component: Any, name: str) -> Control:
        def value(s: Snapshot) -> Any:
            return getattr(s.state(ChangeState), name)

        return Control(component, value, lambda s: {"value": value(s)})

    return [
        Control(ui.activation, _activation, lambda s: {"value": _activation(s)}),
        Control(ui.positions, lambda s: s.edits.drop_positions, lambda s: {"value": s.edits.drop_positions}),
        Control(ui.code, code_inputs, lambda s: {"value": code(s)}),
        has(ui.costs_stop, "costs_task", "visible"),
        has(ui.both, "writing_task", "interactive", when=False),
        has(ui.stop, "writing_task", "interactive"),
        Control(ui.again, is_stale, lambda s: {"visible": is_stale(s)}),
        has(ui.patch_stop, "sweep_task", "interactive"),
        Control(ui.keep, _has_cell, lambda s: {"visible": _has_cell(s)}),
        *(state(getattr(ui, name), name) for name in ("clean", "corrupted", "patched")),
        *(Control(getattr(ui, name), picker_inputs, partial(answer_picker, name)) for name in ("answer", "other")),
    ]


def _activation(s: Snapshot) -> str:
    return s.edits.activation or ("gelu_tanh" if s.text is None else s.text.config.activation)


def _has_cell(s: Snapshot) -> bool:
    return s.state(ChangeState).cell is not None and shown_sweep(s) is not None


def _wire(ui: ChangeComponents, events: Events) -> None:
    on = events.on
    latest: dict[str, Any] = {"trigger_mode": "always_last"}
    run: dict[str, Any] = {"queue": "model"}
    on(ui.switches.select, editing.set_switches, [ui.switches], **latest)
    on(ui.activation.input, editing.choose_activation, [ui.activation], **latest)
    on(ui.positions.input, editing.drop_positions, [ui.positions], **latest)
    on(ui.reset.click, editing.reset)
    for button, name in zip(ui.experiments, EXPERIMENTS, strict=True):
        on(button.click, partial(editing.try_experiment, name))
    on(ui.costliest.click, editing.switch_off_costliest, trigger_mode="once", **run)
    on(ui.costs_stop.click, editing.stop_costs)
    on(ui.original.select, editing.select_token, [ui.original])
    on(ui.divergence.select, editing.select_bar, [ui.divergence])

    on([ui.both.click, ui.again.click], generation.generate_both, trigger_mode="once", **run)
    on(ui.stop.click, generation.stop)

    boxes = [ui.clean, ui.corrupted]
    for name, box in zip(("clean", "corrupted"), boxes, strict=True):
        on(box.input, partial(patching.set_control, name), [box], **latest)
    for name in ("answer", "other", "patched"):
        picker = getattr(ui, name)
        on(picker.input, partial(patching.choose, name), [picker, *boxes], sets=[picker], **run, **latest)
    for button, name in zip(ui.examples, PROMPT_PAIRS, strict=True):
        on(button.click, partial(patching.take_example, name), **run)
    on(ui.measure.click, patching.measure, boxes, trigger_mode="once", **run)
    on(ui.patch_stop.click, patching.stop_sweep)
    on(ui.map.select, patching.choose_cell, [ui.map])
    on(ui.keep.click, patching.keep, **run)
