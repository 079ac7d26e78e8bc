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
from components.render import Control
from components.state.snapshot import Snapshot
from components.tabs.train import choices, handlers, layout
from components.tabs.train.components import TrainComponents, TrainState
from components.tabs.train.scaling import build_scaling
from components.tabs.train.views import VIEWS, evaluation_of, progress_of
from components.widgets.chart import chart
from gpt.training.live_run import N_EVALUATIONS
from gpt.training.run_queue import RunQueue

NAME = "train"
TICK_SECONDS = 0.7  # between two updates of a run


def build_train(localizer: Localizer, events: Events) -> Any:
    """Build and wire the tab; nothing is computed before Start. Returns the event after which a text may be generated
    with a trained model."""
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card gb-train"):
        localizer.sentence("train.question", kind="question")
        localizer.sentence("train.lead", kind="lead")
        parts |= layout.build_task(localizer) | layout.build_settings(localizer) | layout.build_buttons(localizer)
    with gr.Column(visible=False, elem_id="train-results") as parts["results"]:
        with gr.Row(elem_classes="gb-cards"):
            with gr.Column(elem_classes="gb-card", min_width=320):
                localizer.sentence("train.curve.question", kind="question")
                parts["curve"] = chart(elem_id="train-curve", clickable=True, view="train-curve")
            with gr.Column(elem_classes="gb-card", min_width=320):
                parts |= layout.build_moment(localizer)
        parts |= layout.build_attention(localizer)
    parts["timer"] = gr.Timer(TICK_SECONDS, active=False)
    ui = TrainComponents(**{field.name: parts[field.name] for field in fields(TrainComponents)})
    build_scaling(localizer, events)
    events.renderer.add(NAME, VIEWS, controls=_controls(ui))
    return _wire(ui, events)


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
        control(ui.results, lambda s: evaluation_of(s) is not None, "visible"),
        control(ui.timer, _goes_on, "active"),
        Control(ui.scrubber, lambda s: s.state(TrainState).run, _scrubber_range),
        control(ui.scrubber, _shown_step, "value"),
    ]


def _goes_on(s: Snapshot) -> bool:
    progress = progress_of(s)
    return progress is not None and not progress.ended


def _has_begun(s: Snapshot) -> bool:
    return _goes_on(s) and not _is(s, "waiting")


def _is(s: Snapshot, state: str) -> bool:
    progress = progress_of(s)
    return progress is not None and progress.state == state


def _scrubber_range(s: Snapshot) -> dict[str, Any]:
    run = s.state(TrainState).run
    if run is None:
        return {}
    return {"maximum": run.recipe.steps, "step": max(1, run.recipe.steps // N_EVALUATIONS)}


def _shown_step(s: Snapshot) -> int:
    evaluation = evaluation_of(s)
    return 0 if evaluation is None else evaluation.step


def _wire(ui: TrainComponents, events: Events) -> Any:
    queue, on = RunQueue(), events.on
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
    on(ui.timer.tick, handlers.follow, trigger_mode="once")
    on(ui.scrubber.input, handlers.show_step, [ui.scrubber], js=clamp_js(0, choices.STEPS[1]), **latest)
    on(ui.curve.select, handlers.choose_step, payload=True)
    on(ui.heads.select, handlers.choose_head, payload=True)
    return on(ui.open.click, handlers.open_model).success
