"""The handlers of the Lessons tab: open a lesson, draw its picture, say it again, go to where the system is at work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import gradio as gr

from components.errors import localize_error
from components.i18n import Language, t
from components.state.example import first_prompt
from components.state.session import Session
from components.tabs.lessons.components import LessonsState
from components.tabs.lessons.course import LESSONS
from components.tabs.lessons.picture import MOST_TOKENS, Drawn, Knob, Picture, Scene
from components.tabs.lessons.pictures import PICTURES
from components.tabs.lessons.places import Rooms, select_head, set_place
from components.tabs.lessons.screen import body_value, head_value
from components.text_views import strip_words

if TYPE_CHECKING:
    from components.tabs.lessons.tab import Lessons

Values = dict[Any, Any]
NOTHING_OPEN = -1


def open_lesson(session: Session, sent: Values) -> None:
    """Open the panels of a lesson."""
    index = sent.get("lesson")
    if type(index) is int and 0 <= index < len(LESSONS):
        session.change(LessonsState, lesson=LESSONS[index].key)


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
    for key, column in ui.panels.items():
        update[column] = gr.update(visible=key == LESSONS[index].key)
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
        label=t(knob.label, language),
        minimum=knob.low,
        maximum=knob.top(config),
        step=knob.step,
        value=knob.start(config),
        visible=True,
    )


def _choices(key: str, picture: Picture, language: Language) -> list[tuple[str, str]]:
    return [(t(f"picture.{key}.choice.{choice}", language), choice) for choice in picture.choices]


def draw(ui: Lessons, values: Values) -> Iterator[Values]:
    """The small picture of the lesson that is open; what cannot be drawn is said, and the rest stays."""
    language, index = values[ui.frame.language], values[ui.index]
    picture = PICTURES.get(LESSONS[index].key) if index != NOTHING_OPEN else None
    if picture is None:
        yield {ui.notice: gr.skip()}
        return
    if picture.takes_time():
        yield {ui.says: t("lessons.learning", language)}
    try:
        drawn = picture.draw(scene_of(ui, picture, values))
    except ValueError as problem:
        yield {ui.notice: localize_error(problem, language)}
    else:
        yield {ui.notice: "", **_values(ui, drawn, language)}


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


def retell(ui: Lessons, values: Values) -> Values:
    """Every word again, in the language chosen just now; nothing before a lesson was opened."""
    language, index = values[ui.frame.language], values[ui.index]
    if index == NOTHING_OPEN:
        return {ui.head: gr.skip()}
    update: Values = _words(ui, index, language)
    picture = PICTURES.get(LESSONS[index].key)
    for slider, knob in ((ui.a, picture and picture.a), (ui.b, picture and picture.b)):
        if knob is not None:
            update[slider] = gr.update(label=t(knob.label, language))
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
