"""The Inside tab: the flow, one picture of the whole machine, and all heads at a glance."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import gradio as gr

from components.i18n import Language, Words, say
from components.inside import views as inside_views
from components.inside.record import Record
from components.playground import looking
from components.playground.tab import LOOKING, SESSION_SECONDS, Playground
from components.playground.views import Look, shading
from components.session import Session
from components.texts import TEXTS
from components.widgets.flow import flow
from components.widgets.heads import heads
from components.widgets.sentence import sentence
from components.widgets.tokens import selection
from gpt import Generation

Values = dict[Any, Any]
TICK_SECONDS = 0.4  # between two looks for new tokens, while the tab is open
REST = 3  # after an update, so many times its own duration goes by before the next, which leaves the stream its time


@dataclass
class Memory:
    """What one visitor's tab remembers; changed in place. shown: the document and how much of it is on the screen."""

    record: Record | None = None
    shown: tuple[int, int] = (0, 0)
    rests_until: float = 0.0

    def __deepcopy__(self, memo: dict[int, object]) -> Memory:
        """Another visitor starts with nothing."""
        return Memory()

    def read(self, document: Generation) -> Record:
        """The record of that document, up to what has been read of it."""
        if self.record is None or self.record.document is not document:
            self.record = Record(document)
        self.record.extend()
        return self.record


@dataclass(frozen=True)
class Inside:
    """The components of the tab, and the Playground, whose session it shares."""

    playground: Playground
    memory: gr.State
    flow: gr.HTML
    heads: gr.HTML
    timer: gr.Timer


def build_inside(words: Words, tabs: gr.Tabs, tab: gr.Tab, playground: Playground) -> None:
    """Lay the tab out and wire it; what it shows is the document of the Playground."""
    with gr.Column(elem_classes="gb-card"):
        words.build(sentence, {"value": "inside.question"}, kind="question")
        words.build(sentence, {"value": "inside.lead"}, kind="caption")
        picture = words.build(flow, {"labels": flow_labels}, elem_id="flow")
    with gr.Column(elem_classes="gb-card"):
        words.build(sentence, {"value": "inside.heads.question"}, kind="question")
        grid = words.build(heads, {"labels": heads_labels}, elem_id="heads")
    memory = gr.State(Memory(), time_to_live=SESSION_SECONDS)
    _wire(Inside(playground, memory, picture, grid, gr.Timer(TICK_SECONDS, active=False)), tabs, tab)


_FLOW = (
    *("name", "empty", "keys", "scale", "layer", "head", "stream"),
    *("before", "after", "pair", "later", "full", "stack"),
)
_SHORT = (
    "embedding",
    "tok",
    "pos",
    "pre",
    "q",
    "k",
    "weights",
    "v",
    "z",
    "att",
    "mid",
    "ff",
    "out",
    "post",
    "fin",
    "next",
)


def flow_labels(language: Language) -> dict[str, str]:
    """The fixed words of the flow; those with {...} are filled in by the browser."""
    fixed = {key: say(f"flow.{key}", language) for key in _FLOW}
    return fixed | {key: say(f"flow.short.{key}", language) for key in _SHORT}


def heads_labels(language: Language) -> dict[str, str]:
    """The fixed words of the overview."""
    return {key: say(f"heads.{key}", language) for key in ("name", "title", "share", "axis", "keys")}


def _wire(ui: Inside, tabs: gr.Tabs, tab: gr.Tab) -> None:
    everything = {ui.memory, *ui.playground.inputs()}
    pictures = [ui.flow, ui.heads]
    latest = {"trigger_mode": "always_last", **LOOKING}
    opened = partial(show, ui)
    tab.select(opened, everything, pictures, **LOOKING)
    tabs.select(_only_while_open, None, ui.timer, **LOOKING)
    ui.timer.tick(partial(follow, ui), everything, [*pictures, ui.timer], **LOOKING)
    ui.playground.frame.language.change(opened, everything, pictures, **LOOKING)
    for widget in pictures:
        chosen = widget.select(_with_event(ui), everything, pictures, **latest)
        chosen.then(partial(agree, ui), everything, _shared(ui.playground), **latest)


def _only_while_open(event: gr.SelectData) -> gr.Timer:
    """The timer runs while this tab is the one that is open."""
    return gr.Timer(active=event.value in TEXTS["tab.inside"])


def _shared(playground: Playground) -> list[Any]:
    return [*playground.seen(), playground.layer, playground.head]


def show(ui: Inside, values: Values) -> Values:
    """Both pictures of what is selected."""
    session, memory, language = values[ui.playground.session], values[ui.memory], values[ui.playground.frame.language]
    document = session.document
    if document is None or document.n_read == 0:
        memory.shown = (0, 0)
        return {ui.flow: "", ui.heads: ""}
    began = time.perf_counter()
    record = memory.read(document)
    session.look = session.look.fitting(record.config, position=session.look.position)
    update = {
        ui.flow: inside_views.flow(record, session.look, language),
        ui.heads: inside_views.overview(record, session.look, language),
    }
    memory.shown = (id(document), record.length)
    now = time.perf_counter()
    memory.rests_until = now + REST * (now - began)
    return update


def follow(ui: Inside, values: Values) -> Values:
    """While the text streams: both pictures again where the model has read more, nothing where it has not."""
    session: Session = values[ui.playground.session]
    memory: Memory = values[ui.memory]
    document = session.document
    now = (0, 0) if document is None else (id(document), document.n_read)
    begins = document is not None and document.n_read == 0  # the prompt is being read
    if begins or now == memory.shown or time.perf_counter() < memory.rests_until:
        return {ui.timer: gr.skip()}
    return show(ui, values)


def chosen_look(look: Look, document: Generation, sent: Values) -> Look:
    """The look with what was clicked; what the browser sent may be anything, and what does not exist is left out."""
    config = document.loaded.model.config
    limits = {"position": document.n_read, "layer": config.n_layer, "head": config.n_head}
    sound = {key: sent[key] for key, n in limits.items() if type(sent.get(key)) is int and 0 <= sent[key] < n}
    return replace(look, **sound)


def _with_event(ui: Inside) -> Callable[..., Values]:
    def handle(values: Values, event: gr.EventData) -> Values:
        session: Session = values[ui.playground.session]
        if session.document is None:
            return {}
        sent = event._data if isinstance(event._data, dict) else {}
        session.look = chosen_look(session.look, session.document, sent)
        return show(ui, values)

    return handle


def agree(ui: Inside, values: Values) -> Values:
    """Let the Playground show what was selected here."""
    playground, session = ui.playground, values[ui.playground.session]
    document, look = session.document, session.look
    if document is None:
        return {}
    head = looking.AVERAGE if look.head is None else look.head
    params = looking.params_of(playground, values)
    return {
        **looking.look(playground, session, params, values[playground.frame.language]),
        playground.strip: gr.update(selected=selection(look.position), shade=shading(document, look)),
        playground.layer: look.layer,
        playground.head: head,
    }
