"""Side by side: two columns on one prompt, each with its model and settings, and how far apart they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr

from components.frame import Frame, model_choices
from components.i18n import Language
from components.legacy import LOOKING, RUNNING
from components.localized import Words
from components.state.settings import LIMITS
from components.tabs.compare import writing as compare_writing
from components.tabs.compare.views import SIDES, strip_words
from components.widgets.chart import chart
from components.widgets.sentence import sentence
from components.widgets.tokens import tokens

SETTINGS = ("temperature", "top_k", "top_p")
LONGEST, LENGTH = 200, 40  # new tokens at most, and at first


@dataclass(frozen=True)
class Column:
    """The components of one side."""

    model: gr.Dropdown
    temperature: gr.Slider
    top_k: gr.Slider
    top_p: gr.Slider
    seed: gr.Textbox
    status: gr.HTML
    strip: gr.HTML
    bars: gr.HTML

    def controls(self) -> list[Any]:
        """What the presets set."""
        return [self.model, *(getattr(self, name) for name in SETTINGS), self.seed]


@dataclass(frozen=True)
class Sides:
    """The components of this part, and what it shares with the rest of the page. opened: whether it ever was."""

    frame: Frame
    memory: gr.State
    opened: gr.State
    prompt: gr.Textbox
    columns: tuple[Column, Column]
    presets: dict[str, gr.Button]
    length: gr.Slider
    generate: gr.Button
    stop: gr.Button
    notice: gr.HTML
    parting: gr.HTML
    divergence: gr.HTML

    def inputs(self) -> set[Any]:
        """Everything that a handler reads."""
        own = {self.frame.model, self.frame.language, self.memory, self.prompt, self.length}
        return own.union(*(column.controls() for column in self.columns))

    def outputs(self) -> list[Any]:
        """Everything that a run changes."""
        shown = [part for column in self.columns for part in (column.status, column.strip, column.bars)]
        return [*shown, self.generate, self.stop, self.notice, self.parting, self.divergence]


def build_sides(words: Words, frame: Frame, memory: gr.State, prompt: gr.Textbox) -> Sides:
    """Lay it out and wire it; both columns begin with the page's model."""
    with gr.Column(elem_classes="gb-card"):
        words.build(sentence, {"value": "compare.preset"}, kind="caption")
        with gr.Row(elem_classes="gb-examples"):
            presets = {
                name: words.build(
                    gr.Button, {"value": f"compare.preset.{name}"}, size="sm", min_width=0, elem_id=f"compare-{name}"
                )
                for name in compare_writing.PRESETS
            }
        with gr.Row(elem_classes="gb-columns"):
            controls = [_controls(words, frame, side) for side in SIDES]
        with gr.Row(elem_classes="gb-compare-run"):
            length = words.build(
                gr.Slider,
                {"label": "length", "info": "length.info"},
                minimum=1,
                maximum=LONGEST,
                step=1,
                value=LENGTH,
                elem_id="compare-length",
            )
            with gr.Row(elem_classes="gb-buttons gb-short"):
                generate = _button(words, "generate", variant="primary")
                stop = _button(words, "stop", interactive=False)
        notice = sentence(kind="notice", elem_id="compare-notice")
        with gr.Row(elem_classes="gb-columns"):
            strips = [_strip(words, side) for side in SIDES]
        words.build(sentence, {"value": "compare.parting.question"}, kind="question")
        parting = sentence(kind="lead", elem_id="compare-parting")
    with gr.Column(elem_classes="gb-card"):
        words.build(sentence, {"value": "compare.divergence.question"}, kind="question")
        divergence = chart(elem_id="compare-divergence", clickable=True)
        words.build(sentence, {"value": "compare.bars.question"}, kind="question")
        with gr.Row(elem_classes="gb-columns"):
            for side, strip in zip(SIDES, strips, strict=True):
                with gr.Column(min_width=280):
                    _name(words, side, "bars")
                    strip["bars"] = chart(elem_id=f"compare-{side}-bars")
    columns = tuple(Column(**of, **shown) for of, shown in zip(controls, strips, strict=True))
    opened = gr.State(False)
    ui = Sides(frame, memory, opened, prompt, columns, presets, length, generate, stop, notice, parting, divergence)
    _wire(ui)
    return ui


def _controls(words: Words, frame: Frame, side: str) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    opening = compare_writing.USUAL | compare_writing.PRESETS["temperatures"][SIDES.index(side)]
    with gr.Column(min_width=280, elem_classes="gb-compare-side"):
        parts["model"] = words.build(
            gr.Dropdown,
            {"label": f"compare.{side}"},
            choices=model_choices("en"),
            value=frame.example.loaded.name,
            elem_id=f"compare-{side}-model",
        )
        with gr.Row(elem_classes="gb-compare-settings"):
            for name in SETTINGS:
                limit = LIMITS[name]
                parts[name] = words.build(
                    gr.Slider,
                    {"label": name},
                    minimum=limit.low,
                    maximum=limit.high,
                    step=limit.step,
                    value=opening[name],
                    min_width=120,
                    elem_id=f"compare-{side}-{name.replace('_', '-')}",
                )
            parts["seed"] = words.build(
                gr.Textbox,
                {"label": "seed", "placeholder": "seed.placeholder"},
                value=opening["seed"],
                max_length=18,
                min_width=120,
                elem_id=f"compare-{side}-seed",
            )
    return parts


def _strip(words: Words, side: str) -> dict[str, Any]:
    with gr.Column(min_width=280):
        _name(words, side, "strip")
        strip = words.build(tokens, {"labels": partial(strip_words, side)}, elem_id=f"compare-{side}-strip")
        status = sentence(kind="status", elem_id=f"compare-{side}-status")
    return {"strip": strip, "status": status}


def _name(words: Words, side: str, part: str) -> None:
    """Which side it is, for a screen on which one stands below the other."""
    words.build(sentence, {"value": f"compare.{side}"}, kind="caption", elem_id=f"compare-{side}-{part}-name")


def _button(words: Words, name: str, **options: Any) -> gr.Button:
    return words.build(gr.Button, {"value": name}, size="md", min_width=0, elem_id=f"compare-{name}", **options)


def _wire(ui: Sides) -> None:
    everything, outputs = ui.inputs(), ui.outputs()

    def handler(function: Callable[..., Any], *more: Any) -> Callable[..., Any]:
        return partial(function, ui, *more)

    stream = {"fn": handler(compare_writing.stream), "inputs": everything, "outputs": outputs, **RUNNING}
    asked = [ui.generate.click, *(column.seed.submit for column in ui.columns)]
    runs = [gr.on(asked, **stream), ui.opened.change(**stream)]
    controls = [part for column in ui.columns for part in column.controls()]
    for name, button in ui.presets.items():
        filled = button.click(handler(compare_writing.preset, name), everything, controls, **LOOKING)
        runs.append(filled.then(**stream))
    for run in runs:
        for ended in (run.then, run.failure):
            ended(handler(compare_writing.finish), everything, outputs, **LOOKING)
    ui.stop.click(handler(compare_writing.stop), everything, None, cancels=runs, **LOOKING)

    for widget, select in (
        (ui.columns[0].strip, partial(compare_writing.select_token, ui, 0)),
        (ui.columns[1].strip, partial(compare_writing.select_token, ui, 1)),
        (ui.divergence, partial(compare_writing.select_column, ui)),
    ):
        widget.select(_with_event(select), everything, outputs, trigger_mode="always_last", **LOOKING)
    ui.frame.language.change(handler(compare_writing.retell), everything, outputs, **LOOKING)
    models = [column.model for column in ui.columns]
    ui.frame.language.change(_choices, [ui.frame.language, ui.frame.own], models, **LOOKING)


def _choices(language: Language, own: list[str]) -> list[dict[str, Any]]:
    """The models to choose from, the visitor's own among them, for both columns."""
    return [gr.update(choices=model_choices(language, own)) for _ in SIDES]


def _with_event(function: Callable[..., Any]) -> Callable[..., Any]:
    """A handler that also gets what the browser sent with the event: a dict of anything."""

    def handle(values: compare_writing.Values, event: gr.EventData) -> compare_writing.Values:
        return function(values, event._data if isinstance(event._data, dict) else {})

    return handle
