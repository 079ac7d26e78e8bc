"""The Playground: type a prompt, watch the model write, see what it expected and where it looked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import gradio as gr

from components.api import SLOTS
from components.frame import Frame
from components.localized import Words
from components.state.session import opening
from components.state.settings import LIMITS
from components.tabs.playground import looking, panels, starting, steering, writing
from components.tabs.playground.panels import EXAMPLES
from components.tabs.playground.pipeline import build_pipeline, wire_pipeline
from components.tabs.playground.upload import Upload, build_upload, open_upload

# Looking must not wait behind writing: two queues.
# Progress is shown on nothing: else the browser copies the state of every output, and of all in it, at every message.
_QUIET = {"show_progress": "hidden", "show_progress_on": [], "concurrency_limit": SLOTS, "api_visibility": "private"}
LOOKING = {**_QUIET, "concurrency_id": "look"}
RUNNING = {**_QUIET, "concurrency_id": "model"}


@dataclass(frozen=True)
class Playground:
    """The components of the tab, and the visitor's session."""

    frame: Frame
    session: gr.State
    prompt: gr.Textbox
    prompt_strip: gr.HTML
    prompt_count: gr.HTML
    examples: tuple[gr.Button, ...]
    generate: gr.Button
    step: gr.Button
    stop: gr.Button
    clear: gr.Button
    temperature: gr.Slider
    top_k: gr.Slider
    top_p: gr.Slider
    min_p: gr.Slider
    repetition_penalty: gr.Slider
    length: gr.Slider
    seed: gr.Textbox
    pace: gr.Dropdown
    notice: gr.HTML
    use_tail: gr.Button
    strip: gr.HTML
    hint: gr.HTML
    shading: gr.Radio
    status: gr.HTML
    bars: gr.HTML
    layer: gr.Dropdown
    head: gr.Dropdown
    heatmap: gr.HTML
    files: gr.HTML
    undo: gr.Button
    redo: gr.Button
    back: gr.Button
    go_on: gr.Button
    draw: gr.HTML
    tree: gr.HTML
    box: gr.Textbox
    hits: gr.HTML

    def inputs(self) -> set[Any]:
        """Everything that a handler reads; it gets {component: value}."""
        names = (*LIMITS, "session", "prompt", "length", "seed", "pace", "layer", "head", "shading", "box")
        return {*(getattr(self, name) for name in names), self.frame.model, self.frame.language}

    def seen(self) -> list[Any]:
        """Everything that shows what is selected."""
        return [getattr(self, name) for name in ("strip", "hint", "bars", "heatmap", "draw", "hits", "back", "go_on")]

    def live(self) -> list[Any]:
        """Everything that changes while a text is written."""
        return [getattr(self, name) for name in ("strip", "hint", "bars", "heatmap", "draw", "hits", "status")]

    def outputs(self) -> list[Any]:
        """Everything that a run of the model changes."""
        others = ("status", "notice", "use_tail", "tree", "prompt_strip", "prompt_count", "layer", "head", "length")
        return [*self.seen(), *self.buttons(), *(getattr(self, name) for name in others), self.frame.model]

    def buttons(self) -> list[Any]:
        """Those that can be pressed at times, and at others not; `seen` has the rest of them."""
        return [getattr(self, name) for name in ("generate", "step", "stop", "undo", "redo")]


def build_playground(words: Words, frame: Frame, *, uploads: bool = False) -> Playground:
    """Lay the tab out; the first screen shows a finished example. uploads: with the panel for own checkpoints."""
    session = opening(frame.example)
    parts: dict[str, Any] = {"frame": frame, "session": gr.State(session)}
    with gr.Row(elem_classes="gb-playground"):
        with gr.Column(elem_classes="gb-controls", min_width=280):
            parts |= panels.prompt(words, frame.example)
            parts |= panels.settings(words, frame.example)
            upload = build_upload(words) if uploads else None
        with gr.Column(elem_classes="gb-stage", min_width=320):
            parts |= panels.text(words, session)
            with gr.Row(elem_classes="gb-cards"):
                with gr.Column(elem_classes="gb-card", min_width=300):
                    parts |= panels.bars(words, session)
                with gr.Column(elem_classes="gb-card", min_width=300):
                    parts |= panels.attention(words, session)
            pipeline = build_pipeline(words)
    ui = Playground(**{field.name: parts[field.name] for field in fields(Playground)})
    _wire(ui, upload)
    wire_pipeline(ui, pipeline, parts["preset"])
    return ui


def _wire(ui: Playground, upload: Upload | None) -> None:
    """Every event of the tab; each handler gets the panel and {component: value}."""
    everything, outputs = ui.inputs(), ui.outputs()

    def handler(function: Callable[..., Any]) -> Callable[..., Any]:
        return partial(function, ui)

    typed = [ui.prompt_strip, ui.prompt_count]
    ui.prompt.change(handler(looking.show_prompt), everything, typed, trigger_mode="always_last", **LOOKING)

    begin = {"fn": handler(starting.begin), "inputs": everything, "outputs": [*outputs, ui.prompt], **RUNNING}
    begun = [gr.on([ui.generate.click, ui.prompt.submit], **begin)]
    for button, key in zip(ui.examples, EXAMPLES, strict=True):
        filled = button.click(partial(starting.fill, ui, EXAMPLES[key]), everything, ui.prompt, **LOOKING)
        begun.append(filled.then(**begin))
    shortened = ui.use_tail.click(handler(starting.use_tail), everything, ui.prompt, **LOOKING)
    begun.append(shortened.then(**begin))
    begun.append(ui.frame.model.input(**begin | {"fn": handler(starting.pick)}))
    begun.append(ui.go_on.click(**begin | {"fn": handler(starting.go_on)}))
    if upload is not None:
        given = [upload.files, upload.n_head, ui.frame.language, ui.frame.own]
        changed = [upload.n_head, upload.message, ui.frame.model]
        opened = upload.open.click(partial(open_upload, upload, ui.frame), given, changed, **RUNNING)
        begun.append(opened.success(**begin))
    written = [follow(ui, event) for event in begun]

    ui.step.click(handler(starting.step), everything, outputs, **RUNNING)
    stopping = {"inputs": everything, "outputs": outputs, "cancels": [*begun, *written]}
    ui.stop.click(handler(writing.stop), **stopping, **LOOKING)
    ui.clear.click(handler(starting.clear), **stopping | {"outputs": [*outputs, ui.prompt]}, **LOOKING)
    changing = {**stopping, **RUNNING}
    for button, change in ((ui.undo, steering.undo), (ui.redo, steering.redo), (ui.back, steering.go_back)):
        button.click(handler(change), trigger_mode="multiple", **changing | {"outputs": [*outputs, ui.prompt]})
    ui.bars.select(_with_event(ui, steering.choose), trigger_mode="multiple", **changing)
    ui.tree.select(_with_event(ui, steering.switch), **changing)
    for put in (
        ui.hits.select(_with_event(ui, steering.choose), **changing),
        ui.box.submit(handler(steering.type_text), **changing),
    ):
        put.success(str, None, ui.box, **LOOKING)
    ui.box.change(handler(steering.search), everything, ui.hits, trigger_mode="always_last", **LOOKING)

    seen = ui.seen()
    for widget, select in ((ui.strip, looking.select_token), (ui.heatmap, looking.select_row)):
        widget.select(_with_event(ui, select), everything, seen, **LOOKING)
    latest = {"trigger_mode": "always_last", **LOOKING}
    pickers = [ui.layer.input, ui.head.input, ui.shading.input]
    aside = [ui.strip, ui.hint, ui.heatmap, ui.layer, ui.head]
    gr.on(pickers, handler(looking.select_head), everything, aside, **latest)
    sliders = [getattr(ui, name).change for name in LIMITS]
    gr.on(sliders, handler(looking.show_bars), everything, ui.bars, **latest)
    retold = [*seen, *typed, ui.head, ui.status, ui.tree]
    ui.frame.language.change(handler(looking.retell), everything, retold, **LOOKING)


def follow(ui: Playground, begun: Any) -> Any:
    """Let the text be written once the event `begun` has made it ready; the event that writes it."""
    live = {ui.session, ui.frame.language}
    # A new text may be ready before the last one has seen that its turn is over: that event must not be dropped.
    written = begun.success(partial(writing.write, ui), live, ui.live(), trigger_mode="multiple", **RUNNING)
    for ended in (begun.failure, written.then, written.failure):
        ended(partial(writing.finish, ui), ui.inputs(), ui.outputs(), trigger_mode="multiple", **LOOKING)
    return written


def _with_event(ui: Playground, function: Callable[..., Any]) -> Callable[..., Any]:
    """A handler that also gets what the browser sent with the event: a dict of anything."""

    def handle(values: looking.Values, event: gr.EventData) -> looking.Values:
        return function(ui, values, event._data if isinstance(event._data, dict) else {})

    return handle
