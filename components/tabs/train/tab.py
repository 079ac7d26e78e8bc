"""The Train tab: a tiny GPT learns a task or a text while the visitor watches; below, what size does to the loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import gradio as gr

from components.frame import Frame
from components.legacy import LOOKING, Playground
from components.localized import Words
from components.tabs.train import cards, handlers
from components.tabs.train.desk import Desk
from components.tabs.train.scaling import build_scaling
from components.tabs.train.views import Moment
from components.widgets.chart import chart
from components.widgets.sentence import sentence

Values = dict[Any, Any]
TICK_SECONDS = 0.7  # between two looks at a run


@dataclass(frozen=True)
class Train:
    """The components of the tab, the Playground, which a model is opened in, and the desk with everybody's runs."""

    playground: Playground
    tabs: gr.Tabs
    desk: Desk
    moment: gr.State
    given: gr.State
    timer: gr.Timer
    task: gr.Radio
    about: gr.HTML
    own: gr.Column
    text: gr.Textbox
    file: gr.UploadButton
    code: gr.Button
    source: gr.HTML
    n_layer: gr.Radio
    n_head: gr.Radio
    n_embd: gr.Radio
    steps: gr.Slider
    rate: gr.Number
    seconds: gr.Slider
    start: gr.Button
    pause: gr.Button
    cancel: gr.Button
    factor: gr.Radio
    notice: gr.HTML
    status: gr.HTML
    open: gr.Button
    download: gr.DownloadButton
    results: gr.Column
    curve: gr.HTML
    scrubber: gr.Slider
    samples_says: gr.HTML
    samples: gr.HTML
    sample: gr.HTML
    heads: gr.HTML
    heatmap: gr.HTML

    @property
    def frame(self) -> Frame:
        """Where model and language are chosen."""
        return self.playground.frame

    def of(self, *names: str) -> set[Any]:
        """Inputs: these components, what is looked at, and the language."""
        return {self.moment, self.frame.language, *(getattr(self, name) for name in names)}

    def shown(self) -> list[Any]:
        """Everything that follows a run."""
        buttons = ("start", "pause", "cancel", "factor", "open", "download")
        pictures = ("results", "curve", "scrubber", "samples_says", "samples", "sample", "heads", "heatmap")
        return [getattr(self, name) for name in (*buttons, *pictures, "notice", "status", "timer")]


def build_train(words: Words, app: gr.Blocks, tabs: gr.Tabs, tab: gr.Tab, playground: Playground) -> None:
    """Lay the tab out and wire it; nothing is computed before somebody presses Start."""
    parts: dict[str, Any] = {"playground": playground, "tabs": tabs, "desk": Desk()}
    with gr.Column(elem_classes="gb-card gb-train"):
        words.build(sentence, {"value": "train.question"}, kind="question")
        words.build(sentence, {"value": "train.lead"}, kind="lead")
        parts |= cards.build_task(words) | cards.build_settings(words) | cards.build_buttons(words)
    with gr.Column(visible=False, elem_id="train-results") as parts["results"]:
        with gr.Row(elem_classes="gb-cards"):
            with gr.Column(elem_classes="gb-card", min_width=320):
                words.build(sentence, {"value": "train.curve.question"}, kind="question")
                parts["curve"] = chart(elem_id="train-curve", clickable=True)
            with gr.Column(elem_classes="gb-card", min_width=320):
                parts |= cards.build_moment(words)
        parts |= cards.build_attention(words)
    parts["moment"] = gr.State(Moment())
    parts["given"] = gr.State(None)
    parts["timer"] = gr.Timer(TICK_SECONDS, active=False)
    _wire(Train(**{field.name: parts[field.name] for field in fields(Train)}), app, tab)
    build_scaling(words, playground.frame, tab)


def _wire(ui: Train, app: gr.Blocks, tab: gr.Tab) -> None:
    def on(trigger: Any, function: Callable[..., Any], inputs: set[Any], outputs: list[Any]) -> Any:
        return trigger(_with_request(ui, function), inputs, outputs, trigger_mode="always_last", **LOOKING)

    settings = ("n_layer", "n_head", "n_embd", "steps", "rate")
    chosen = [ui.about, ui.own, *(getattr(ui, name) for name in settings), ui.notice]
    text = [ui.notice, ui.given, ui.text, ui.source]
    ui.task.input(partial(handlers.about, ui), ui.of("task"), chosen, trigger_mode="always_last", **LOOKING)
    ui.code.click(partial(handlers.take_code, ui), ui.of(), text, **LOOKING)
    ui.file.upload(partial(handlers.take_file, ui), ui.of("file"), text, **LOOKING)
    ui.text.input(partial(handlers.typed, ui), ui.of(), text, trigger_mode="always_last", **LOOKING)

    on(ui.start.click, handlers.start, ui.of("task", "text", "given", "seconds", *settings), ui.shown())
    on(ui.pause.click, handlers.pause, ui.of(), ui.shown())
    on(ui.cancel.click, handlers.cancel, ui.of(), ui.shown())
    on(ui.factor.input, handlers.change_rate, ui.of("factor"), [ui.notice])
    on(ui.timer.tick, handlers.follow, ui.of(), ui.shown())
    on(ui.scrubber.input, handlers.scrub, ui.of("scrubber"), ui.shown())
    on(tab.select, handlers.enter, ui.of(), ui.shown())
    for widget, choose in ((ui.curve, handlers.choose_step), (ui.heads, handlers.choose_head)):
        widget.select(_with_event(ui, choose), ui.of(), ui.shown(), trigger_mode="always_last", **LOOKING)
    on(ui.frame.language.change, handlers.retell, ui.of("task", "given"), [ui.about, ui.source, *ui.shown()])

    model = [ui.frame.own, *ui.playground.outputs(), ui.tabs, ui.notice]
    opened = on(ui.open.click, handlers.open_model, {*ui.of(), ui.frame.model, ui.playground.session}, model)
    ui.playground.begin_after(opened.success)
    app.unload(_leaving(ui.desk))


def _with_request(ui: Train, function: Callable[..., Values]) -> Callable[..., Values]:
    """A handler that also learns whose page it is."""

    def handle(values: Values, request: gr.Request) -> Values:
        return function(ui, values, request)

    return handle


def _with_event(ui: Train, function: Callable[..., Values]) -> Callable[..., Values]:
    """A handler that also gets what the browser sent with the event: a dict of anything."""

    def handle(values: Values, event: gr.EventData, request: gr.Request) -> Values:
        return function(ui, values, event._data if isinstance(event._data, dict) else {}, request)

    return handle


def _leaving(desk: Desk) -> Callable[[gr.Request], None]:
    """What happens when a page is closed or loaded again."""

    def leave(request: gr.Request) -> None:
        desk.leave(handlers.owner_of(request))

    return leave
