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

from components.frame import Frame
from components.i18n import Language, Words, say
from components.lab.feed_forward import build_feed_forward
from components.lab.initialisation import build_initialisation
from components.lab.kernels import build_kernels
from components.lab.layer_norm import build_layer_norm
from components.lab.masks import build_masks
from components.lab.panel import Panel
from components.lab.positions import build_positions
from components.lab.shapes import ShapeLab
from components.lab.shortcuts import build_shortcuts
from components.lab.skeleton import build_skeleton
from components.lab.tokenizer import build_tokenizer
from components.lab.tying import build_tying
from components.lessons.course import LESSONS
from components.lessons.picture import MOST_CHARACTERS, MOST_TOKENS, Drawn, Knob, Picture, Scene
from components.lessons.pictures import PICTURES
from components.lessons.places import Rooms, select_head, set_place
from components.lessons.screen import body_value, head_value, lesson_body, lesson_head
from components.playground.tab import LOOKING, RUNNING, SESSION_SECONDS, Playground
from components.problems import in_words
from components.session import first_prompt
from components.widgets.chart import chart
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.tokens import tokens

Values = dict[Any, Any]
# The panels of the lab that a lesson shows, below its small picture where it has one.
PANELS: dict[str, tuple[Callable[[Words, Frame, Playground], Panel], ...]] = {
    "tokenizer": (build_tokenizer,),
    "skeleton": (build_skeleton,),
    "layer_norm": (build_layer_norm,),
    "feed_forward": (build_feed_forward,),
    "shortcuts": (build_shortcuts,),
    "initialisation": (build_tying, build_initialisation),
    "small": (build_masks,),
    "next": (build_kernels, build_positions),
}
NOTHING_OPEN = -1


@dataclass(frozen=True)
class Panels:
    """The panels of one lesson, and the column that they are shown and hidden with."""

    column: gr.Column
    each: tuple[Panel, ...]


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
    panels: dict[str, Panels]

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
    parts: dict[str, Any] = {"frame": frame, "index": gr.State(NOTHING_OPEN, time_to_live=SESSION_SECONDS)}
    parts["kept"] = gr.State({}, time_to_live=SESSION_SECONDS)
    with gr.Column(elem_classes="gb-card"):
        parts["head"] = lesson_head(elem_id="lesson-head")
    with gr.Row(elem_classes="gb-lesson-columns"):
        with gr.Column(elem_classes="gb-lesson-picture", min_width=320, scale=1):
            parts |= _picture(words)
            parts["panels"] = _panels(words, frame, playground)
        with gr.Column(elem_classes="gb-card", min_width=320, scale=1):
            parts["body"] = lesson_body(elem_id="lesson-body")
    ui = Lessons(**{field.name: parts[field.name] for field in fields(Lessons)})
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


def _panels(words: Words, frame: Frame, playground: Playground) -> dict[str, Panels]:
    panels = {}
    for key, builders in PANELS.items():
        with gr.Column(visible=False) as column:
            panels[key] = Panels(column, tuple(build(words, frame, playground) for build in builders))
    return panels


def strip_words(language: Language) -> dict[str, str]:
    """The words of the strip."""
    keys = ("name", "token", "id", "probability", "rank", "attention", "marks")
    return {key: say(f"strip.{key}", language) for key in keys} | {"empty": ""}


def _wire(ui: Lessons, rooms: Rooms) -> None:
    latest, each = {"trigger_mode": "always_last"}, {"trigger_mode": "multiple"}  # a late one would lose what was sent
    columns = [ui.card, *(panels.column for panels in ui.panels.values())]
    every = [panel for panels in ui.panels.values() for panel in panels.each]
    screen = [ui.index, ui.head, ui.body, *columns, *ui.controls(), *ui.shown()]
    turned = ui.head.select(_with_event(partial(turn, ui)), {ui.kept, ui.frame.language}, screen, **each, **LOOKING)
    seen = {ui.index, *(component for panel in every for component in panel.inputs)}
    filled = list({component: None for panel in every for component in panel.outputs})
    turned.then(partial(draw, ui), ui.inputs(), ui.shown(), **latest, **RUNNING)
    turned.then(partial(fill, ui), seen, filled, **latest, **LOOKING)

    moved = [control.input for control in (ui.a, ui.b, ui.choice)]
    gr.on(moved, partial(draw, ui), ui.inputs(), ui.shown(), **latest, **RUNNING)
    # A paste raises no input. These two come while the sliders may still say what the last lesson left there, which
    # gradio would refuse where that is outside of the new limits: what they said last is kept.
    steady = {ui.index, ui.kept, ui.text, ui.frame.language}
    ui.text.change(partial(draw, ui), steady, ui.shown(), **latest, **RUNNING)
    told = ui.frame.language.change(partial(retell, ui), steady, [ui.head, ui.body, *ui.controls()], **LOOKING)
    told.then(partial(draw, ui), steady, ui.shown(), **latest, **RUNNING)

    given = {*rooms.inputs(), ui.index, ui.a, ui.b}
    opened = ui.body.select(partial(enter, ui, rooms), given, rooms.tabs, **LOOKING)
    opened.then(partial(prepare, ui, rooms), given, rooms.outputs(), **LOOKING)


def _with_event(function: Callable[[Values, Values], Values]) -> Callable[..., Values]:
    """A handler that also gets what the browser sent with the event: a dict of anything."""

    def handle(values: Values, event: gr.EventData) -> Values:
        return function(values, event._data if isinstance(event._data, dict) else {})

    return handle


def turn(ui: Lessons, values: Values, sent: Values) -> Values:
    """Open a lesson: its words, its controls, and the card of its picture."""
    index, language = sent.get("lesson"), values[ui.frame.language]
    if type(index) is not int or not 0 <= index < len(LESSONS):
        return {ui.index: gr.skip()}
    picture = PICTURES.get(LESSONS[index].key)
    config = ui.frame.example.loaded.model.config
    values[ui.kept].clear()
    update: Values = {ui.index: index, **_words(ui, index, language), **_values(ui, Drawn(), language), ui.notice: ""}
    update[ui.card] = gr.update(visible=picture is not None)
    for key, panels in ui.panels.items():
        update[panels.column] = gr.update(visible=key == LESSONS[index].key)
    if picture is not None:
        text = first_prompt(ui.frame.example.loaded, picture.text, most=MOST_TOKENS) if picture.text else ""
        update[ui.text] = gr.update(value=text, visible=picture.text is not None)
        for slider, knob in ((ui.a, picture.a), (ui.b, picture.b)):
            update[slider] = _slider(knob, config, language)
        choices = _choices(LESSONS[index].key, picture, language)
        first = picture.choices[0] if picture.choices else None
        update[ui.choice] = gr.update(choices=choices, value=first, visible=bool(picture.choices))
    return update


def _words(ui: Lessons, index: int, language: Language) -> Values:
    config = ui.frame.example.loaded.model.config
    return {ui.head: head_value(index, language, config), ui.body: body_value(index, language, config)}


def _slider(knob: Knob | None, config: Any, language: Language) -> Any:
    if knob is None:
        return gr.update(visible=False)
    return gr.update(
        label=say(knob.label, language),
        minimum=knob.low,
        maximum=knob.top(config),
        step=knob.step,
        value=knob.start(config),
        visible=True,
    )


def _choices(key: str, picture: Picture, language: Language) -> list[tuple[str, str]]:
    return [(say(f"picture.{key}.choice.{choice}", language), choice) for choice in picture.choices]


def draw(ui: Lessons, values: Values) -> Values:
    """The small picture of the lesson that is open; what cannot be drawn is said, and the rest stays."""
    language, index = values[ui.frame.language], values[ui.index]
    picture = PICTURES.get(LESSONS[index].key) if index != NOTHING_OPEN else None
    if picture is None:
        return {ui.notice: gr.skip()}
    try:
        drawn = picture.draw(scene_of(ui, picture, values))
    except ValueError as problem:
        return {ui.notice: in_words(problem, language)}
    return {ui.notice: "", **_values(ui, drawn, language)}


def _values(ui: Lessons, drawn: Drawn, language: Language) -> Values:
    strip = gr.update(value=drawn.strip, labels=strip_words(language))
    return {ui.says: drawn.says, ui.chart: drawn.chart, ui.strip: strip, ui.table: drawn.table}


def scene_of(ui: Lessons, picture: Picture, values: Values) -> Scene:
    """What the controls say, each brought into its limits: what arrives may be of another lesson, or anything."""
    loaded = ui.frame.example.loaded
    config, text = loaded.model.config, values[ui.text]
    kept = values[ui.kept]
    kept |= {name: values[getattr(ui, name)] for name in ("a", "b", "choice") if getattr(ui, name) in values}
    choice = kept.get("choice")
    return Scene(
        loaded,
        values[ui.frame.language],
        text if isinstance(text, str) else "",
        picture.a.clamped(kept.get("a"), config) if picture.a else 0,
        picture.b.clamped(kept.get("b"), config) if picture.b else 0,
        choice if choice in picture.choices else (picture.choices or ("",))[0],
    )


def fill(ui: Lessons, values: Values) -> Values:
    """The panels of the lesson that is open, if it has any."""
    index = values[ui.index]
    if index == NOTHING_OPEN or LESSONS[index].key not in ui.panels:
        return gr.skip()
    update: Values = {}
    for panel in ui.panels[LESSONS[index].key].each:
        update |= panel.show(values)
    return update


def retell(ui: Lessons, values: Values) -> Values:
    """Every word again, in the language chosen just now; nothing before a lesson was opened."""
    language, index = values[ui.frame.language], values[ui.index]
    if index == NOTHING_OPEN:
        return {ui.head: gr.skip()}
    update: Values = _words(ui, index, language)
    picture = PICTURES.get(LESSONS[index].key)
    for slider, knob in ((ui.a, picture and picture.a), (ui.b, picture and picture.b)):
        if knob is not None:
            update[slider] = gr.update(label=say(knob.label, language))
    if picture is not None and picture.choices:
        update[ui.choice] = gr.update(choices=_choices(LESSONS[index].key, picture, language))
    return update


def enter(ui: Lessons, rooms: Rooms, values: Values) -> Values:
    """Go to the place where the system is at work; its pictures follow once their tab is there."""
    index = values[ui.index]
    if index == NOTHING_OPEN:
        return {rooms.tabs: gr.skip()}
    place = LESSONS[index].place
    select_head(rooms, place, int(values[ui.a]), int(values[ui.b]), values)
    return {rooms.tabs: gr.Tabs(selected=place.tab)}


def prepare(ui: Lessons, rooms: Rooms, values: Values) -> Values:
    """What the place should show."""
    index = values[ui.index]
    return (set_place(rooms, LESSONS[index].place, values) if index != NOTHING_OPEN else {}) or gr.skip()
