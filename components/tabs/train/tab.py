"""The Train tab: live training of a tiny GPT on a task or a text; below, scaling of the loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

import gradio as gr

from components.events import Events, clamp_js
from components.i18n import t
from components.localized import Localizer
from components.monitoring import TRAININGS_WAITING
from components.render import Control
from components.state.snapshot import Snapshot
from components.tabs.train import choices, handlers, layout
from components.tabs.train.analysis import analysis
from components.tabs.train.components import Machine, TrainComponents, TrainState
from components.tabs.train.scaling import build_scaling
from components.tabs.train.views import VIEWS, progress_of, shown_of
from components.widgets.chart import chart
from components.widgets.widget import placed
from gpt.training.run_queue import RunQueue

NAME = "train"
TICK_SECONDS = 0.7  # between two updates of a run


def build_train(localizer: Localizer, events: Events, machine: Machine) -> Any:
    """Build and wire the tab. machine: makes the forward pass that the whole model is drawn from. Returns the event
    after which a text may be generated with a trained model."""
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card gb-train"):
        localizer.sentence("train.question", kind="question")
        localizer.sentence("train.lead", kind="lead")
        parts |= layout.build_task(localizer) | layout.build_settings(localizer) | layout.build_buttons(localizer)
    with gr.Column(visible=False, elem_id="train-results") as parts["results"]:
        parts |= layout.build_film(localizer)
        with gr.Row(elem_classes="gb-cards"):
            with gr.Column(elem_classes="gb-card", min_width=320):
                localizer.sentence("train.curve.question", kind="question")
                parts["curve"] = placed(chart(elem_id="train-curve", clickable=True, view="train-curve"))
            with gr.Column(elem_classes="gb-card", min_width=320):
                layout.build_samples(localizer)
        parts |= layout.build_attention(localizer)
    parts["timer"] = gr.Timer(TICK_SECONDS, active=False)
    ui = TrainComponents(**{field.name: parts[field.name] for field in fields(TrainComponents)})
    build_scaling(localizer, events)
    events.renderer.add(NAME, VIEWS, analysis(machine), controls=_controls(ui))
    return _wire(ui, events, machine)


def _controls(ui: TrainComponents) -> list[Control]:
    """Components that the server changes."""

    def control(component: Any, of: Callable[[Snapshot], Any], name: str) -> Control:
        return Control(component, of, lambda s: {name: of(s)})

    def value(name: str) -> Control:
        return control(getattr(ui, name), lambda s: getattr(s.state(TrainState), name), "value")

    return [
        *(value(name) for name in (*choices.SHAPE, "steps", "rate", "text", "factor")),
        control(ui.own, lambda s: s.state(TrainState).task == choices.TEXT, "visible"),
        control(ui.start, lambda s: not _goes_on(s), "interactive"),
        control(ui.pause, _has_begun, "interactive"),
        control(ui.pause, lambda s: t("train.continue" if _is(s, "paused") else "train.pause", s.language), "value"),
        control(ui.cancel, _goes_on, "interactive"),
        control(ui.factor, _has_begun, "interactive"),
        control(ui.open, lambda s: _is(s, "finished"), "visible"),
        control(ui.download, lambda s: _is(s, "finished"), "visible"),
        control(ui.results, lambda s: shown_of(s) is not None, "visible"),
        control(ui.timer, _goes_on, "active"),
        control(ui.source, lambda s: s.state(TrainState).source, "value"),
        control(ui.source, _has_both, "visible"),
    ]


def _goes_on(s: Snapshot) -> bool:
    progress = progress_of(s)
    return progress is not None and not progress.ended


def _has_begun(s: Snapshot) -> bool:
    return _goes_on(s) and not _is(s, "waiting")


def _is(s: Snapshot, state: str) -> bool:
    progress = progress_of(s)
    return progress is not None and progress.state == state


def _has_both(s: Snapshot) -> bool:
    state = s.state(TrainState)
    return state.run is not None and state.recorded is not None


def _wire(ui: TrainComponents, events: Events, machine: Machine) -> Any:
    queue, on = RunQueue(), events.on
    TRAININGS_WAITING.set_function(lambda: queue.n_waiting)
    latest: Any = {"trigger_mode": "always_last"}
    on(ui.task.input, handlers.choose_task, [ui.task], **latest)
    for name in (*choices.SHAPE, "rate"):
        on(getattr(ui, name).input, partial(handlers.set_value, name), [getattr(ui, name)], **latest)
    for name, limits in (("steps", choices.STEPS), ("seconds", choices.SECONDS)):
        slider = getattr(ui, name)
        on(slider.input, partial(handlers.set_value, name), [slider], js=clamp_js(*limits), **latest)
    on(ui.text.input, handlers.type_text, [ui.text], **latest)
    on(ui.file.upload, handlers.take_file, [ui.file])
    on(ui.code.click, handlers.take_code)

    on(ui.start.click, partial(handlers.start, queue), [ui.text, ui.rate])
    on(ui.pause.click, handlers.pause)
    on(ui.cancel.click, handlers.cancel)
    on(ui.download.click, handlers.download)
    on(ui.factor.input, handlers.change_rate, [ui.factor], **latest)
    on(ui.timer.tick, partial(handlers.follow, machine), trigger_mode="once")
    on(ui.source.input, partial(handlers.choose_source, machine), [ui.source], **latest)
    on(ui.player.input, partial(handlers.show_moment, machine), [ui.player], **latest)
    on(ui.save.click, handlers.save_film)
    on(ui.curve.select, partial(handlers.choose_step, machine), [ui.curve])
    on(ui.heads.select, handlers.choose_head, [ui.heads])
    on(ui.flow.select, handlers.select_in_machine, [ui.flow])
    return on(ui.open.click, handlers.open_model).success
