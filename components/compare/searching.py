"""The handlers of the beam search: search, stop, choose a way, make it the document, tell it again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import gradio as gr

from components.api import checked_text
from components.compare import beam_views
from components.compare.memory import Memory
from components.i18n import Language, say
from components.playground import looking, views
from components.playground.writing import loading
from components.session import Session
from components.widgets.tokens import selection
from gpt import Generation
from gpt.documents.beam import BeamSearch

if TYPE_CHECKING:
    from components.compare.beams import Beams
    from components.playground.tab import Playground

Values = dict[Any, Any]
STEP_SECONDS = 0.2  # for one step of the search, so that one sees the tree grow
WIDEST = 8


def search(ui: Beams, values: Values) -> Iterator[Values]:
    """Let the tree grow, step by step; what cannot be done is said in place, and the last tree stays."""
    language: Language = values[ui.frame.language]
    memory: Memory = values[ui.memory]
    yield {**_buttons(ui, running=True), ui.notice: ""}
    try:
        prompt = checked_text("prompt", values[ui.prompt] or "")
        width, length = values[ui.width], values[ui.length]
        if type(width) is int and width > WIDEST:
            raise ValueError(f"width must be a whole number in 1..{WIDEST}, not {width}")
        loaded = yield from loading(ui.status, values[ui.frame.model], language)
        n, limit = len(loaded.tokenizer.encode(prompt)), loaded.model.config.block_size
        if n > limit:
            raise ValueError(views.count_sentence(n, limit, language))
        found = BeamSearch(Generation(loaded, prompt), width, length, length_penalty=values[ui.penalty])
    except ValueError as problem:
        yield {ui.notice: str(problem), ui.status: ""}
        return
    memory.search, memory.chosen = found, None
    tree = beam_views.begin(found)
    yield {ui.tree: tree, ui.says: "", ui.table: "", ui.chosen: ""}
    began = time.perf_counter()
    for count, candidates in enumerate(found.steps(), start=1):
        tree += beam_views.step_lines(found, candidates)
        yield {
            ui.tree: tree,
            ui.status: say("beams.running", language, n=count, total=found.max_depth),
            ui.says: beam_views.says(found, language),
        }
        time.sleep(max(0.0, began + count * STEP_SECONDS - time.perf_counter()))


def finish(ui: Beams, values: Values) -> Values:
    """After a search, however it ended."""
    memory: Memory = values[ui.memory]
    return _buttons(ui, running=False) | ({} if memory.search is None else _told(ui, memory, values[ui.frame.language]))


def retell(ui: Beams, values: Values) -> Values:
    """Every sentence again, in the language chosen just now."""
    memory: Memory = values[ui.memory]
    return gr.skip() if memory.search is None else _told(ui, memory, values[ui.frame.language])


def _told(ui: Beams, memory: Memory, language: Language) -> Values:
    return {
        ui.status: beam_views.status(memory.search, language, stopped=not memory.search.done),
        ui.says: beam_views.says(memory.search, language),
        ui.table: beam_views.finished(memory.search, language),
        **_chosen(ui, memory, language),
    }


def choose(ui: Beams, values: Values, sent: Values) -> Values:
    """The candidate that was clicked; what the browser sent may be anything."""
    memory: Memory = values[ui.memory]
    number = sent.get("candidate")
    if memory.search is None or type(number) is not int or not 0 <= number < len(memory.search.candidates):
        return gr.skip()
    memory.chosen = number
    return _chosen(ui, memory, values[ui.frame.language])


def adopt(ui: Beams, playground: Playground, tabs: gr.Tabs, values: Values) -> Values:
    """The chosen way becomes the document, with its tokens as chosen by hand, and the Playground opens."""
    memory: Memory = values[ui.memory]
    session: Session = values[playground.session]
    language: Language = values[ui.frame.language]
    number = beam_views.picked(memory)
    if number is None:
        return gr.skip()
    document = Generation(memory.search.document.loaded, memory.search.document.prompt_ids)
    document.append(*memory.search.ids(number))
    document.read()
    session.document, session.meter, session.finish_reason = document, None, None
    session.prompt = document.loaded.tokenizer.decode(document.prompt_ids)
    session.look = session.look.fitting(document.loaded.model.config, position=views.NEWEST)
    values[playground.prompt], values[ui.frame.model] = session.prompt, document.loaded.name
    return {
        **looking.look(playground, session, looking.params_of(playground, values), language),
        **looking.fit(playground, session, document.loaded, values),
        playground.strip: gr.update(value=views.strip(document), selected=selection(views.NEWEST), shade=""),
        playground.prompt: session.prompt,
        playground.notice: "",
        playground.status: say("beams.adopted", language),
        ui.frame.model: document.loaded.name,
        tabs: gr.Tabs(selected="playground"),
    }


def _chosen(ui: Beams, memory: Memory, language: Language) -> Values:
    return {
        ui.chosen: beam_views.chosen(memory, language),
        ui.adopt: gr.update(interactive=beam_views.picked(memory) is not None),
    }


def _buttons(ui: Beams, *, running: bool) -> Values:
    return {ui.search: gr.update(interactive=not running), ui.stop: gr.update(interactive=running)}
