"""Beam search, seen: the tree as it grows, the whole texts that it found, and a way from it into the Playground."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr

from components.frame import Frame
from components.legacy import LOOKING, RUNNING, Playground
from components.localized import Words
from components.tabs.compare import searching as compare_searching
from components.tabs.compare.beam_views import tree_words
from components.tabs.compare.searching import WIDEST
from components.widgets.beams import beams
from components.widgets.sentence import sentence
from components.widgets.table import table

LONGEST, LENGTH, WIDTH = 40, 10, 3  # new tokens at most, and at first; texts carried on at first


@dataclass(frozen=True)
class Beams:
    """The components of this part, and what it shares with the rest of the page. opened: whether it ever was."""

    frame: Frame
    memory: gr.State
    opened: gr.State
    prompt: gr.Textbox
    width: gr.Slider
    penalty: gr.Slider
    length: gr.Slider
    search: gr.Button
    stop: gr.Button
    notice: gr.HTML
    status: gr.HTML
    tree: gr.HTML
    says: gr.HTML
    table: gr.HTML
    chosen: gr.HTML
    adopt: gr.Button

    def inputs(self) -> set[Any]:
        """Everything that a handler reads."""
        shared = {self.frame.model, self.frame.language, self.memory, self.prompt}
        return {*shared, self.width, self.penalty, self.length}

    def outputs(self) -> list[Any]:
        """Everything that a search changes."""
        shown = [self.notice, self.status, self.tree, self.says, self.table, self.chosen]
        return [*shown, self.search, self.stop, self.adopt]


def build_beams(words: Words, tabs: gr.Tabs, playground: Playground, memory: gr.State, prompt: gr.Textbox) -> Beams:
    """Lay it out and wire it."""
    frame = playground.frame
    parts: dict[str, Any] = {"frame": frame, "memory": memory, "prompt": prompt, "opened": gr.State(False)}
    with gr.Column(elem_classes="gb-card"):
        words.build(sentence, {"value": "beams.question"}, kind="question")
        words.build(sentence, {"value": "beams.lead"}, kind="caption")
        with gr.Row(elem_classes="gb-compare-run"):
            parts["width"] = _slider(words, "width", 1, WIDEST, 1, WIDTH)
            parts["penalty"] = _slider(words, "penalty", -2, 3, 0.1, 1.0)
            parts["length"] = _slider(words, "length", 1, LONGEST, 1, LENGTH)
            with gr.Row(elem_classes="gb-buttons gb-short"):
                parts["search"] = words.build(
                    gr.Button,
                    {"value": "beams.search"},
                    variant="primary",
                    size="md",
                    min_width=0,
                    elem_id="beams-search",
                )
                parts["stop"] = words.build(
                    gr.Button, {"value": "stop"}, size="md", interactive=False, min_width=0, elem_id="beams-stop"
                )
        parts["notice"] = sentence(kind="notice", elem_id="beams-notice")
        parts["tree"] = words.build(beams, {"labels": tree_words}, elem_id="beams-tree")
        parts["says"] = sentence(kind="lead", elem_id="beams-says")
        parts["status"] = sentence(kind="status", elem_id="beams-status")
        with gr.Row(elem_classes="gb-compare-chosen"):
            parts["chosen"] = sentence(kind="caption", elem_id="beams-chosen")
            parts["adopt"] = words.build(
                gr.Button, {"value": "beams.adopt"}, size="md", interactive=False, min_width=0, elem_id="beams-adopt"
            )
    with gr.Column(elem_classes="gb-card"):
        words.build(sentence, {"value": "beams.table.question"}, kind="question")
        parts["table"] = table(elem_id="beams-table")
    ui = Beams(**parts)
    _wire(ui, tabs, playground)
    return ui


def _slider(words: Words, name: str, low: float, high: float, step: float, value: float) -> gr.Slider:
    return words.build(
        gr.Slider,
        {"label": f"beams.{name}", "info": f"beams.{name}.info"},
        minimum=low,
        maximum=high,
        step=step,
        value=value,
        min_width=180,
        elem_id=f"beams-{name}",
    )


def _wire(ui: Beams, tabs: gr.Tabs, playground: Playground) -> None:
    everything, outputs = ui.inputs(), ui.outputs()

    def handler(function: Callable[..., Any]) -> Callable[..., Any]:
        return partial(function, ui)

    run = gr.on([ui.search.click, ui.opened.change], handler(compare_searching.search), everything, outputs, **RUNNING)
    for ended in (run.then, run.failure):
        ended(handler(compare_searching.finish), everything, outputs, **LOOKING)
    ui.stop.click(handler(compare_searching.stop), everything, None, cancels=run, **LOOKING)
    ui.frame.language.change(handler(compare_searching.retell), everything, outputs, **LOOKING)

    def clicked(values: compare_searching.Values, event: gr.EventData) -> compare_searching.Values:
        return compare_searching.choose(ui, values, event._data if isinstance(event._data, dict) else {})

    ui.tree.select(clicked, everything, [ui.chosen, ui.adopt], trigger_mode="always_last", **LOOKING)

    adopt = partial(compare_searching.adopt, ui, playground, tabs)
    put = [*playground.outputs(), tabs]
    ui.adopt.click(adopt, everything | playground.inputs(), put, **LOOKING)
