"""The Compare tab: one prompt, two columns in step; or a beam search, seen."""

from __future__ import annotations

from typing import Any

import gradio as gr

from components.frame import model_choices
from components.i18n import Language
from components.legacy import LOOKING, Playground
from components.localized import Words
from components.tabs.compare.beams import build_beams
from components.tabs.compare.memory import Memory
from components.tabs.compare.sides import Sides, build_sides
from components.widgets.sentence import sentence


def build_compare(words: Words, tabs: gr.Tabs, tab: gr.Tab, playground: Playground) -> None:
    """Lay the tab out and wire it; each part makes its first example when it is first opened."""
    frame = playground.frame
    memory = gr.State(Memory())
    with gr.Column(elem_classes="gb-card"):
        words.build(sentence, {"value": "compare.question"}, kind="question")
        words.build(sentence, {"value": "compare.says"}, kind="caption")
        prompt = words.build(gr.Textbox, {"label": "prompt"}, lines=2, max_lines=6, elem_id="compare-prompt")
    with gr.Tabs(elem_id="compare-parts"):
        with words.build(gr.Tab, {"label": "compare.sides"}, id="compare-sides"):
            sides = build_sides(words, frame, memory, prompt)
        with words.build(gr.Tab, {"label": "compare.beams"}, id="compare-beams") as beams_tab:
            beams = build_beams(words, tabs, playground, memory, prompt)
    given = {memory, prompt, playground.prompt, frame.model, frame.own, frame.language}
    models = [column.model for column in sides.columns]

    def opened(values: dict[Any, Any]) -> dict[Any, Any]:
        return open_tab(values[memory], sides, playground, values)

    tab.select(opened, given, [prompt, sides.opened, *models], **LOOKING)
    beams_tab.select(lambda: True, None, beams.opened, **LOOKING)


def open_tab(memory: Memory, sides: Sides, playground: Playground, values: dict[Any, Any]) -> dict[Any, Any]:
    """The Playground's prompt, unless another was typed here; the models that there are by now; a first example."""
    language: Language = values[playground.frame.language]
    update: dict[Any, Any] = {sides.opened: True}
    if (values[sides.prompt] or "") == (memory.taken or ""):
        memory.taken = update[sides.prompt] = values[playground.prompt] or ""
    picked = {"value": values[playground.frame.model]} if memory.pair is None else {}
    for column in sides.columns:
        update[column.model] = gr.update(choices=model_choices(language, values[playground.frame.own]), **picked)
    return update
