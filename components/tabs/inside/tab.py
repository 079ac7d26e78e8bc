"""The Inside tab: parts that look into the model, one of them open; all follow one selection."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import gradio as gr

from components.i18n import LANGUAGES, Language, t
from components.legacy import LOOKING, Playground, agree, shared
from components.localized import Words
from components.state.selection import Selection
from components.state.session import Session
from components.tabs.inside.embeddings import build_embeddings
from components.tabs.inside.machine import build_machine
from components.tabs.inside.memory import Memory
from components.tabs.inside.one_head import build_one_head
from components.tabs.inside.part import Part, Scene, Values
from components.tabs.inside.record import MEMORY, Record
from components.tabs.inside.stream import build_stream
from components.tabs.inside.trace_file import build_trace_file
from components.widgets.sentence import sentence
from gpt import Generation
from gpt.inference.products import matrix_numbers
from gpt.inference.threads import threads_for
from gpt.models.memory import format_bytes

PARTS: tuple[Callable[[Words], Part], ...] = (build_machine, build_one_head, build_stream, build_embeddings)
TICK_SECONDS = 0.4  # between two looks for new tokens, while the tab is open
SILENT = 1e10  # multiplications of a pass that need no word: a good second
REST = 3  # after an update, so many times its own duration goes by before the next, which leaves the stream its time


@dataclass(frozen=True)
class Inside:
    """The parts of the tab, what is remembered of the visitor, and the Playground, whose session it shares."""

    playground: Playground
    memory: gr.State
    notice: gr.HTML
    timer: gr.Timer
    parts: tuple[Part, ...]

    @property
    def shown(self) -> list[Any]:
        """What changes with the text: the pictures of all parts and their controls, and the notice."""
        return [self.notice, *(output for part in self.parts for output in part.outputs)]


def build_inside(words: Words, tabs: gr.Tabs, tab: gr.Tab, playground: Playground, memory_limit: int = MEMORY) -> None:
    """Lay the tab out and wire it; what it shows is the document of the Playground. Only the open part is computed.

    memory_limit: bytes that the recorded pass of one visitor may take; of a longer text the beginning is shown.
    """
    notice = sentence(kind="notice", elem_id="inside-notice")
    with gr.Tabs(elem_id="inside-parts"):
        parts = tuple(build(words) for build in PARTS)
    build_trace_file(words, playground)
    memory = gr.State(Memory(memory_limit))
    _wire(Inside(playground, memory, notice, gr.Timer(TICK_SECONDS, active=False), parts), tabs, tab)


def _wire(ui: Inside, tabs: gr.Tabs, tab: gr.Tab) -> None:
    controls = {control for part in ui.parts for control in part.controls}
    everything = {ui.memory, *controls, *ui.playground.inputs()}
    latest = {"trigger_mode": "always_last", **LOOKING}
    opened = partial(show, ui)
    tab.select(partial(read_and_show, ui), everything, ui.shown, **LOOKING)
    tabs.select(_only_while_open, None, ui.timer, **LOOKING)
    ui.timer.tick(partial(follow, ui), everything, [*ui.shown, ui.timer], **LOOKING)
    ui.playground.frame.language.change(opened, everything, ui.shown, **LOOKING)
    for number, part in enumerate(ui.parts):
        part.tab.select(partial(open_part, ui, number), everything, ui.shown, **LOOKING)
        for control in part.controls:
            control.input(partial(move, ui, number, control), everything, [ui.notice, *part.outputs], **latest)
        for widget in part.clickable:
            select = _with_event(ui, number, part.meaning.get(widget, {}))
            chosen = widget.select(select, everything, [ui.notice, *part.outputs], **latest)
            chosen.then(partial(agree, ui), everything, shared(ui.playground), **latest)
        for widget, answer in part.answers.items():
            widget.input(_asked(ui, part, answer), {ui.memory, ui.playground.session}, widget, **latest)


def _only_while_open(event: gr.SelectData) -> gr.Timer:
    """The timer runs while this tab is the one that is open."""
    return gr.Timer(active=event.value in {t("tab.inside", language) for language in LANGUAGES})


def open_part(ui: Inside, number: int, values: Values) -> Iterator[Values]:
    """Go on with another part of the tab."""
    if values[ui.memory].part == number:
        yield {ui.notice: gr.skip()}
    else:
        values[ui.memory].part = number
        yield from read_and_show(ui, values)


def read_and_show(ui: Inside, values: Values) -> Iterator[Values]:
    """The pictures of the open part; where the model must read much first, that is said before."""
    document, record = values[ui.playground.session].document, values[ui.memory].record
    if document is not None:
        known = record.length if record is not None and record.document is document else 0
        n = document.n_read - known
        if n * matrix_numbers(document.loaded.model) > SILENT:
            language = values[ui.playground.frame.language]
            yield {ui.notice: t("inside.reading", language, n=f"{n:,}")}
    yield show(ui, values)


def show(ui: Inside, values: Values, *, moved: object = None) -> Values:
    """The pictures of the open part, of what is selected. moved: the control that was just changed, or None."""
    with values[ui.memory].lock:
        return _show(ui, values, moved)


def _show(ui: Inside, values: Values, moved: object) -> Values:
    session, memory, language = values[ui.playground.session], values[ui.memory], values[ui.playground.frame.language]
    document, part = session.document, ui.parts[memory.part]
    if document is None or document.n_read == 0:
        memory.shown = (0, 0)
        return {**part.empty(), ui.notice: t("error.no_text", language) if document is None else ""}
    began, read = time.perf_counter(), document.n_read
    record = memory.read(document)
    look = session.selection = session.selection.fitting(record.config, position=session.selection.position)
    position = min(look.at(document), record.length - 1)
    key = None if memory.key is None or memory.key > position else memory.key
    controls = {control: values[control] for control in part.controls}
    kept = memory.kept.setdefault(part.name, {})
    scene = Scene(record, look, position, key, language, controls, kept, moved)
    with threads_for(_work(record)):
        update = part.show(scene)
    update[ui.notice] = too_long(record, language)
    memory.shown = (0, 0) if kept.get("more") else (document.key, read)
    now = time.perf_counter()
    memory.rests_until = now + (1 if kept.get("more") else REST) * (now - began)
    return update


def _work(record: Record) -> int:
    """Multiplications, about, that a look takes: the weights of a layer, and a few vectors through the head."""
    config = record.config
    return config.n_embd * (record.length**2 + 10 * config.vocab_size)


def too_long(record: Record, language: Language) -> str:
    """What is said where the text is longer than what may be kept of it."""
    total = record.document.n_read
    if total <= record.limit:
        return ""
    return t("inside.too_long", language, n=record.length, total=total, memory=format_bytes(record.memory))


def follow(ui: Inside, values: Values) -> Iterator[Values]:
    """While the text streams: the pictures again where the model has read more or something is still to come, nothing
    where it has not."""
    session: Session = values[ui.playground.session]
    memory: Memory = values[ui.memory]
    document = session.document
    now = (0, 0) if document is None else (document.key, document.n_read)
    begins = document is not None and document.n_read == 0  # the prompt is being read
    if begins or now == memory.shown or time.perf_counter() < memory.rests_until:
        yield {ui.timer: gr.skip()}
    else:
        yield from read_and_show(ui, values)


def chosen_look(look: Selection, document: Generation, sent: Values) -> Selection:
    """The look with what was clicked; what the browser sent may be anything, and what does not exist is left out."""
    config = document.loaded.model.config
    limits = {"position": document.n_read, "layer": config.n_layer, "head": config.n_head}
    sound = {key: sent[key] for key, n in limits.items() if type(sent.get(key)) is int and 0 <= sent[key] < n}
    return replace(look, **sound)


def move(ui: Inside, number: int, control: object, values: Values) -> Values:
    """A control of a part was changed: the part is open, whatever else was known."""
    values[ui.memory].part = number
    return show(ui, values, moved=control)


def _with_event(ui: Inside, number: int, meaning: Mapping[str, str]) -> Callable[..., Values]:
    def handle(values: Values, event: gr.EventData) -> Values:
        session: Session = values[ui.playground.session]
        values[ui.memory].part = number
        if session.document is None:
            return gr.skip()
        sent = event._data if isinstance(event._data, dict) else {}
        sent = {meaning.get(key, key): value for key, value in sent.items()}
        session.selection = chosen_look(session.selection, session.document, sent)
        memory: Memory = values[ui.memory]
        memory.choose(sent.get("key"), moved="position" in sent)
        if sent.get("whole"):
            memory.forget_sent()
        return show(ui, values)

    return handle


def _asked(ui: Inside, part: Part, answer: Callable[[dict[str, Any], Selection], Any]) -> Callable[..., Any]:
    def handle(values: Values, event: gr.EventData) -> Any:
        memory: Memory = values[ui.memory]
        document = values[ui.playground.session].document
        with memory.lock:
            if document is None or memory.record is None or memory.record.document is not document:
                return gr.skip()
            sent = event._data if isinstance(event._data, dict) else {}
            return answer(memory.kept.get(part.name, {}), chosen_look(Selection(), document, sent))

    return handle
