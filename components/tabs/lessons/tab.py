"""The Lessons tab: twenty screens, each with a picture to play with, the code that does it, and a question.

Twenty screens share their components: head and body are one widget each, and one set of controls with a chart, a
strip and a table serves every small picture. Only the panels of the lab have components of their own, which the
browser makes when their lesson is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import gradio as gr

from components.events import Events
from components.frame import Frame
from components.legacy import LOOKING, RUNNING, Playground
from components.localized import Words
from components.panels.feed_forward import build_feed_forward
from components.panels.initialisation import build_initialisation
from components.panels.kernels import build_kernels
from components.panels.layer_norm import build_layer_norm
from components.panels.masks import build_masks
from components.panels.panel import IsOpen
from components.panels.positions import build_positions
from components.panels.shortcuts import build_shortcuts
from components.panels.skeleton import build_skeleton
from components.panels.tokenizer import build_tokenizer
from components.panels.tying import build_tying
from components.tabs.lessons import handlers
from components.tabs.lessons.components import is_lesson_open
from components.tabs.lessons.course import LESSONS
from components.tabs.lessons.picture import MOST_CHARACTERS
from components.tabs.lessons.places import Rooms
from components.tabs.shapes.tab import ShapeLab
from components.text_views import strip_words
from components.widgets.chart import chart
from components.widgets.lesson import lesson_body, lesson_head
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.tokens import tokens

Values = dict[Any, Any]
# The panels of the lab that a lesson shows, below its small picture where it has one.
PANELS: dict[str, tuple[Callable[[Words, Events, str, IsOpen], None], ...]] = {
    "tokenizer": (build_tokenizer,),
    "skeleton": (build_skeleton,),
    "layer_norm": (build_layer_norm,),
    "feed_forward": (build_feed_forward,),
    "shortcuts": (build_shortcuts,),
    "initialisation": (build_tying, build_initialisation),
    "small": (build_masks,),
    "next": (build_kernels, build_positions),
}


@dataclass(frozen=True)
class Lessons:
    """The components of the tab. index: which lesson is open, from 0; kept: what its controls said last, by name."""

    frame: Frame
    index: gr.State
    kept: gr.State
    head: gr.HTML
    body: gr.HTML
    card: gr.Column
    text: gr.Textbox
    a: gr.Slider
    b: gr.Slider
    choice: gr.Radio
    notice: gr.HTML
    says: gr.HTML
    strip: gr.HTML
    chart: gr.HTML
    table: gr.HTML
    panels: dict[str, gr.Column]

    def inputs(self) -> set[Any]:
        """Everything that a small picture is drawn from."""
        return {self.index, self.kept, *self.controls(), self.frame.language}

    def controls(self) -> list[Any]:
        """What a person moves."""
        return [self.text, self.a, self.b, self.choice]

    def shown(self) -> list[Any]:
        """What follows from the controls."""
        return [self.notice, self.says, self.strip, self.chart, self.table]


def build_lessons(
    words: Words, app: gr.Blocks, frame: Frame, tabs: gr.Tabs, playground: Playground, shapes: ShapeLab
) -> None:
    """Lay the tab out and wire it; its widgets ask for the first lesson when they appear. `?lesson=7` opens the tab."""
    parts: dict[str, Any] = {"frame": frame, "index": gr.State(handlers.NOTHING_OPEN)}
    parts["kept"] = gr.State({})
    keys = [lesson.key for lesson in LESSONS]
    with gr.Column(elem_classes="gb-card"):
        parts["head"] = lesson_head(elem_id="lesson-head", keys=keys)
    with gr.Row(elem_classes="gb-lesson-columns"):
        with gr.Column(elem_classes="gb-lesson-picture", min_width=320, scale=1):
            parts |= _picture(words)
            parts["panels"] = _panels(words, playground.events)
        with gr.Column(elem_classes="gb-card", min_width=320, scale=1):
            parts["body"] = lesson_body(elem_id="lesson-body", keys=keys)
    ui = Lessons(**{field.name: parts[field.name] for field in fields(Lessons)})
    playground.events.on(ui.head.select, handlers.open_lesson, payload=True)
    _wire(ui, Rooms(tabs, playground, shapes))
    app.load(None, None, tabs, js=_OPEN_BY_LINK, api_visibility="private")


_OPEN_BY_LINK = """() => {
  const asked = new URLSearchParams(location.search).get("lesson");
  return asked ? { __type__: "update", selected: "lessons" } : { __type__: "update" };
}"""


def _picture(words: Words) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card gb-panel", visible=False) as parts["card"]:
        parts["text"] = words.build(
            gr.Textbox,
            {"label": "picture.text", "info": "picture.text.info"},
            max_length=MOST_CHARACTERS,
            elem_id="lesson-text",
        )
        with gr.Row(elem_classes="gb-panel-controls"):
            for name in ("a", "b"):
                parts[name] = gr.Slider(0, 1, label=name, elem_id=f"lesson-{name}")
        parts["choice"] = words.build(
            gr.Radio,
            {"label": "picture.switch"},
            choices=[],
            elem_id="lesson-choice",
            elem_classes="gb-segments",
            container=False,
        )
        parts["notice"] = sentence(kind="notice", elem_id="lesson-notice")
        parts["says"] = sentence(kind="lead", elem_id="lesson-says")
        parts["strip"] = words.build(tokens, {"labels": strip_words}, selectable=False, elem_id="lesson-strip")
        parts["chart"] = chart(elem_id="lesson-chart")
        parts["table"] = table(elem_id="lesson-table")
    return parts


def _panels(words: Words, events: Events) -> dict[str, gr.Column]:
    """The column of each lesson's panels."""
    columns = {}
    for key, builders in PANELS.items():
        with gr.Column(visible=False) as columns[key]:
            for build in builders:
                build(words, events, "lessons", partial(is_lesson_open, key))
    return columns


def _wire(ui: Lessons, rooms: Rooms) -> None:
    latest, each = {"trigger_mode": "always_last"}, {"trigger_mode": "multiple"}  # a late one would lose what was sent
    columns = [ui.card, *ui.panels.values()]
    screen = [ui.index, ui.head, ui.body, *columns, *ui.controls(), *ui.shown()]
    turned = ui.head.select(
        _with_event(partial(handlers.turn, ui)), {ui.kept, ui.frame.language}, screen, **each, **LOOKING
    )
    turned.then(partial(handlers.draw, ui), ui.inputs(), ui.shown(), **latest, **RUNNING)

    moved = [control.input for control in (ui.a, ui.b, ui.choice)]
    gr.on(moved, partial(handlers.draw, ui), ui.inputs(), ui.shown(), **latest, **RUNNING)
    # A paste raises no input. These two come while the sliders may still say what the last lesson left there, which
    # gradio would refuse where that is outside of the new limits: what they said last is kept.
    steady = {ui.index, ui.kept, ui.text, ui.frame.language}
    ui.text.change(partial(handlers.draw, ui), steady, ui.shown(), **latest, **RUNNING)
    told = ui.frame.language.change(partial(handlers.retell, ui), steady, [ui.head, ui.body, *ui.controls()], **LOOKING)
    told.then(partial(handlers.draw, ui), steady, ui.shown(), **latest, **RUNNING)

    given = {*rooms.inputs(), ui.index, ui.a, ui.b}
    opened = ui.body.select(partial(handlers.enter, ui, rooms), given, rooms.tabs, **LOOKING)
    opened.then(partial(handlers.prepare, ui, rooms), given, rooms.outputs(), **LOOKING)


def _with_event(function: Callable[[Values, Values], Values]) -> Callable[..., Values]:
    """A handler that also gets what the browser sent with the event: a dict of anything."""

    def handle(values: Values, event: gr.EventData) -> Values:
        return function(values, event._data if isinstance(event._data, dict) else {})

    return handle
