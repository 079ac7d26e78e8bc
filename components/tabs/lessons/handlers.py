"""The event handlers of the Lessons tab, and the analysis that draws its figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from components.panels.panel import Result
from components.render import Analysis
from components.state.admission import admitted
from components.state.example import first_prompt
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.lessons.components import LessonsState, Request
from components.tabs.lessons.course import BY_KEY, LESSONS
from components.tabs.lessons.pictures import PICTURES
from components.tabs.lessons.pictures.picture import MAX_TEXT_CHARS, MAX_TOKENS, Drawn, Picture, Scene
from gpt import GPTConfig, LoadedModel
from gpt.background import run_with_progress
from gpt.inference.threads import SMALL_WORK, threads_for


class SetShape(Protocol):
    """Sets the Shapes tab to a configuration or its skeleton."""

    def __call__(self, session: Session, config: GPTConfig, skeleton: bool = False) -> None: ...


def choose_lesson(loaded: LoadedModel, session: Session, sent: dict[str, Any]) -> None:
    """Open the clicked lesson, unless it is open. loaded: the model of the figures."""
    open_lesson(loaded, session, sent.get("lesson"))


def open_lesson(loaded: LoadedModel, session: Session, index: object) -> bool:
    """Open a lesson by its index from 0, with its initial controls; returns False if there is none."""
    if type(index) is not int or not 0 <= index < len(LESSONS):
        return False
    key = LESSONS[index].key
    if session.state(LessonsState).lesson != key:
        session.change(LessonsState, lesson=key, result=None, **_first_values(PICTURES.get(key), loaded))
    return True


def lesson_number(s: Snapshot) -> int | None:
    """The number of the open lesson from 1; None if there is none."""
    lesson = BY_KEY.get(s.state(LessonsState).lesson)
    return None if lesson is None else LESSONS.index(lesson) + 1


def _first_values(picture: Picture | None, loaded: LoadedModel) -> dict[str, Any]:
    picture, config = picture or Picture(lambda scene: Drawn()), loaded.model.config
    return {
        "text": first_prompt(loaded, picture.text, most=MAX_TOKENS) if picture.text else "",
        "a": picture.a.start(config) if picture.a else 0,
        "b": picture.b.start(config) if picture.b else 0,
        "choice": picture.choices[0] if picture.choices else "",
        "learning": picture.takes_time(),
    }


def move(loaded: LoadedModel, name: str, session: Session, value: object) -> None:
    """Set slider "a" or "b"."""
    picture = PICTURES.get(session.state(LessonsState).lesson)
    spec = getattr(picture, name, None)
    if spec is not None:
        session.change(LessonsState, **{name: spec.clamped(value, loaded.model.config)})


def choose(session: Session, choice: object) -> None:
    """Set the switch."""
    picture = PICTURES.get(session.state(LessonsState).lesson)
    if picture is not None and choice in picture.choices:
        session.change(LessonsState, choice=choice)


def type_text(session: Session, text: object) -> None:
    """Set the text, truncated if it is far too long."""
    picture = PICTURES.get(session.state(LessonsState).lesson)
    if picture is not None and picture.text is not None and isinstance(text, str):
        session.change(LessonsState, text=text[: MAX_TEXT_CHARS + 1])


def open_place(set_shape: SetShape, session: Session) -> None:
    """Go to the lesson's place in the app, with its settings."""
    state = session.state(LessonsState)
    lesson, picture = BY_KEY.get(state.lesson), PICTURES.get(state.lesson)
    if lesson is None:
        return
    place = lesson.place
    for name, value in place.settings.items():
        session.settings = session.settings.with_value(name, value)
    if place.selects_head and picture is not None and session.document is not None:
        selection = replace(session.selection, layer=int(state.a))
        if picture.b is not None:
            selection = replace(selection, head=int(state.b))
        session.selection = selection.clamped_to(session.document.loaded.model.config, position=selection.position)
    if place.shape is not None:
        set_shape(session, place.shape, skeleton=place.skeleton)
    session.tab = place.tab


def analysis(loaded: LoadedModel) -> Analysis:
    """The analysis that draws the figure of the open lesson with this model."""
    return Analysis(wanted, partial(draw_picture, loaded))


def wanted(s: Snapshot) -> Request | None:
    """The missing figure; None for a lesson without one."""
    state = s.state(LessonsState)
    question = Request(state.lesson, s.language, state.text, state.a, state.b, state.choice)
    is_known = state.result is not None and state.result.request == question
    return None if state.lesson not in PICTURES or is_known else question


def draw_picture(loaded: LoadedModel, session: Session) -> Iterator[None]:
    """Draw the missing figure; on an error show it and keep the previous figure."""
    with session.lock.reading():
        question = wanted(session.snapshot())
    if question is None:
        return
    lesson, *values = question
    picture, scene = PICTURES[lesson], Scene(loaded, *values)
    before = session.state(LessonsState).drawn

    def work(progress: object) -> Drawn:
        with threads_for(0 if picture.writes_with is None else SMALL_WORK):
            return picture.draw(scene)

    try:
        with ExitStack() as held:
            if picture.writes_with is not None:
                yield from held.enter_context(admitted(session, picture.writes_with(scene)))
            drawn = yield from run_with_progress(work, lambda done, total: None)
    except ValueError as problem:
        session.change(LessonsState, result=Result(question, before, problem))
    else:
        session.change(LessonsState, result=Result(question, drawn))
