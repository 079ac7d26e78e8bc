"""The handlers of the Change tab that write with both models, in step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import gradio as gr

from components import legacy
from components.api import error
from components.i18n import t
from components.legacy import params_of
from components.state.settings import number
from components.tabs.change.answers import NOWHERE, everything
from components.tabs.change.effect import text_of
from components.tabs.change.memory import Memory, Running, Written
from gpt import Generation, with_seed
from gpt.documents.comparison import divergence_index, paired_steps

if TYPE_CHECKING:
    from components.tabs.change.tab import Change

Values = dict[Any, Any]
UPDATE_SECONDS = 0.02  # between two updates at full speed


def write(ui: Change, values: Values) -> Iterator[Values]:
    """Both texts from one prompt, with one seed and the settings of the Playground, a token of each at a time."""
    memory: Memory = values[ui.memory]
    playground, language, text = ui.playground, values[ui.playground.frame.language], memory.text
    memory.running = None
    if text is None:
        yield {ui.notice: t("error.no_text", language)}
        return
    yield _buttons(ui, running=True) | {ui.notice: ""}
    try:
        params = with_seed(params_of(playground, values, seeded=True))
        length = int(number("max_new_tokens", values[playground.length], 1))
        prompt = text.ids[: text.n_prompt]
        pair = Generation(text.loaded, prompt), Generation(text.loaded, prompt, edits=memory.edits)
        for document in pair:
            document.read()
    except ValueError as problem:
        raise error(problem, language) from None
    memory.running = Running(*pair, params, length, memory.edits)
    strips, pace, began, shown = (
        [legacy.strip(document) for document in pair],
        values[playground.pace],
        time.perf_counter(),
        0.0,
    )
    widgets = (ui.original, ui.edited)
    yield {ui.parted: ""} | {w: gr.update(value=s, parted=str(NOWHERE)) for w, s in zip(widgets, strips, strict=True)}
    for count, steps in enumerate(paired_steps(*pair, params, params, length), start=1):
        for side, (document, step) in enumerate(zip(pair, steps, strict=True)):
            strips[side] += "" if step is None else legacy.strip_step(document, step)
        now = time.perf_counter()
        if not pace and now - shown < UPDATE_SECONDS:
            continue
        shown = now
        at = divergence_index(*(document.ids for document in pair))
        place = str(NOWHERE if at is None else at)
        yield {w: gr.update(value=s, parted=place) for w, s in zip(widgets, strips, strict=True)}
        if pace:
            time.sleep(max(0.0, began + count / pace - time.perf_counter()))
    yield {w: gr.update(value=s) for w, s in zip(widgets, strips, strict=True)}


def finish(ui: Change, values: Values) -> Values:
    """After both were written, however that ended: look at the original's text, where the two part."""
    memory, language = values[ui.memory], values[ui.playground.frame.language]
    running, memory.running = memory.running, None
    update = _buttons(ui, running=False)
    if running is None or memory.text is None:
        return update
    running.original.read()
    ids = tuple(running.original.ids), tuple(running.edited.ids)
    at = divergence_index(*ids)
    memory.look_at(text_of(running.original), own=True, position=-1 if at is None else at - 1)
    memory.written = Written(*ids, running.params, running.length, running.edits)
    place = str(NOWHERE if at is None else at)
    edited = gr.update(value=legacy.strip(running.edited), parted=place)
    return update | everything(ui, memory, language) | {ui.edited: edited}


def _buttons(ui: Change, *, running: bool) -> Values:
    return {ui.both: gr.update(interactive=not running), ui.stop: gr.update(interactive=running)}
