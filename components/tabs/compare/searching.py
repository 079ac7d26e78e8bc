"""The handlers of the beam search: search, stop, choose a way, make it the document, tell it again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import gradio as gr

from components.api import checked_text
from components.errors import localize_error
from components.i18n import Language, t
from components.legacy import loading
from components.state.adoption import adopt as adopt_document
from components.state.session import LastAction, Session
from components.tabs.compare import beam_views
from components.tabs.compare.memory import Memory
from gpt import Generation
from gpt.documents.beam_search import BeamSearch
from gpt.errors import GPTError

if TYPE_CHECKING:
    from components.legacy import Playground
    from components.tabs.compare.beams import Beams

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
            raise GPTError("argument.whole_number_range", name="width", low=1, high=WIDEST, value=width)
        loaded = yield from loading(ui.status, values[ui.frame.model], language)
        n, limit = len(loaded.tokenizer.encode(prompt)), loaded.model.config.block_size
        if n > limit:
            raise GPTError("context.prompt_too_long", n=n, excess=n - limit, limit=limit)
        found = BeamSearch(Generation(loaded, prompt), width, length, length_penalty=values[ui.penalty])
    except ValueError as problem:
        yield {ui.notice: localize_error(problem, language), ui.status: ""}
        return
    memory.search, memory.chosen, memory.halted = found, None, False
    tree = beam_views.begin(found)
    yield {
        ui.tree: gr.update(value=tree, labels=beam_views.tree_words(language)),
        **dict.fromkeys((ui.says, ui.table, ui.chosen), ""),
        ui.notice: "" if prompt else t("prompt.started_empty", language),
    }
    while not found.done and not memory.halted:
        began = time.perf_counter()
        tree += beam_views.step_lines(found, found.step())
        yield {
            ui.tree: tree,
            ui.status: t("beams.running", language, n=found.candidates[-1].depth, total=found.max_depth),
            ui.says: beam_views.says(found, language),
        }
        time.sleep(max(0.0, began + STEP_SECONDS - time.perf_counter()))


def stop(ui: Beams, values: Values) -> None:
    """Stop the search."""
    values[ui.memory].halted = True


def finish(ui: Beams, values: Values) -> Values:
    """After a search, however it ended."""
    memory: Memory = values[ui.memory]
    update = _buttons(ui, running=False)
    if memory.search is None:
        return update
    if not memory.search.done:  # its last step may not have reached the page
        update[ui.tree] = beam_views.whole(memory.search)
    return update | _told(ui, memory, values[ui.frame.language])


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
    """The chosen way becomes the document, its tokens as chosen by hand, and the Playground opens."""
    memory: Memory = values[ui.memory]
    session: Session = values[playground.session]
    number = beam_views.picked(memory)
    if number is None:
        return gr.skip()
    document = _document(memory.search.document, session)
    document.append(*memory.search.ids(number), after=len(memory.search.document.ids) - 1)
    prompt = document.tokenizer.decode([each for each in document.prompt_ids if each != document.tokenizer.eot_id])
    adopt_document(session, document, prompt, LastAction("beams.adopted", {}))
    update = playground.shown(session)
    return update | {tabs: gr.Tabs(selected="playground")}


def _document(searched: Generation, session: Session) -> Generation:
    """One that starts as the search did: the visitor's own where it is the same, so that its branches stay."""
    with session.changing():
        own = session.document
        same = own is not None and own.loaded is searched.loaded and own.edits == searched.edits
        if same and own.prompt_ids == searched.prompt_ids:
            return own.copy()
    return Generation(searched.loaded, searched.prompt_ids)


def _chosen(ui: Beams, memory: Memory, language: Language) -> Values:
    return {
        ui.chosen: beam_views.chosen(memory, language),
        ui.adopt: gr.update(interactive=beam_views.picked(memory) is not None),
    }


def _buttons(ui: Beams, *, running: bool) -> Values:
    return {ui.search: gr.update(interactive=not running), ui.stop: gr.update(interactive=running)}
