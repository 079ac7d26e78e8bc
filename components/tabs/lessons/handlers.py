"""Event handlers for the Lessons tab, and the analysis that draws its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from components.i18n import speaking
from components.panels.panel import Result
from components.render import Analysis
from components.state.admission import admitted
from components.state.adoption import adopt
from components.state.example import first_prompt
from components.state.loading import load_with_progress
from components.state.session import Session
from components.state.snapshot import Message, Snapshot
from components.tabs.lessons.course import BY_KEY, LESSONS
from components.tabs.lessons.pictures import PICTURES
from components.tabs.lessons.pictures.picture import EXAMPLE, MAX_TEXT_CHARS, MAX_TOKENS, Drawn, Picture, Scene
from components.tabs.lessons.questions import QUESTIONS, GoalQuestion
from components.tabs.lessons.state import FigureInputs, LessonsState, Reply
from gpt import Generation, GPTConfig, LoadedModel
from gpt.background import run_with_progress
from gpt.inference.threads import SMALL_WORK, threads_for


class SetShape(Protocol):
    """Callback that sets the Shapes tab to a configuration or its skeleton."""

    def __call__(self, session: Session, config: GPTConfig, skeleton: bool = False) -> None: ...


class ScoreText(Protocol):
    """Callback that scores a text in the Loss tab."""

    def __call__(self, session: Session, *, text: str) -> Iterator[None]: ...


@dataclass(frozen=True)
class OtherTabs:
    """The lessons' actions in other tabs. `open_film` opens the film at the named beat."""

    set_shape: SetShape
    score_text: ScoreText
    open_film: Callable[[Session, str], None]


def choose_lesson(loaded: LoadedModel, session: Session, sent: dict[str, Any]) -> None:
    """Open the clicked lesson, given by its 0-based index, unless already open. `loaded` is the model for figures."""
    index = sent.get("lesson")
    if type(index) is int and 0 <= index < len(LESSONS):
        open_lesson(loaded, session, LESSONS[index].key)


def open_lesson(loaded: LoadedModel, session: Session, key: str) -> bool:
    """Open a lesson with its initial controls. Returns False if there is no lesson with this key."""
    if key not in BY_KEY:
        return False
    if session.state(LessonsState).lesson != key:
        session.change(LessonsState, lesson=key, result=None, replies={}, **_first_values(PICTURES.get(key), loaded))
    return True


def lesson_key(s: Snapshot) -> str | None:
    """Return the key of the open lesson, or None if no lesson is open."""
    return s.state(LessonsState).lesson or None


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
        _check_goal(session)


def choose(session: Session, choice: object) -> None:
    """Set the figure's switch."""
    picture = PICTURES.get(session.state(LessonsState).lesson)
    if picture is not None and choice in picture.choices:
        session.change(LessonsState, choice=choice)


def type_text(session: Session, text: object) -> None:
    """Set the text, truncating it if it is far too long."""
    picture = PICTURES.get(session.state(LessonsState).lesson)
    if picture is not None and picture.text is not None and isinstance(text, str):
        session.change(LessonsState, text=text[: MAX_TEXT_CHARS + 1])


def answer(loaded: LoadedModel, session: Session, sent: dict[str, Any]) -> None:
    """Check the answer to one of the lesson's questions.

    `sent` contains "question", the 1-based number of the question, and "answer": the typed number, or the 1-based
    number of the choice.
    """
    state, n = session.state(LessonsState), sent.get("question")
    questions = QUESTIONS.get(state.lesson, ())
    if type(n) is int and 1 <= n <= len(questions):
        reply = questions[n - 1].reply(sent.get("answer"), loaded, state.values)
        if reply is not None:
            session.change(LessonsState, replies={**state.replies, n: reply})


def _check_goal(session: Session) -> None:
    """Record that the figure has reached the state that a question asks for. Leaving the state does not undo this."""
    state = session.state(LessonsState)
    for n, question in enumerate(QUESTIONS.get(state.lesson, ()), 1):
        if isinstance(question, GoalQuestion) and question.is_reached(state):
            session.change(LessonsState, replies={**state.replies, n: Reply("right")})


def open_place(loaded: LoadedModel, tabs: OtherTabs, session: Session) -> Iterator[None]:
    """Go to the lesson's place in the app, with its text and settings."""
    state = session.state(LessonsState)
    lesson = BY_KEY.get(state.lesson)
    if lesson is None:
        return
    place = lesson.place
    values = place.settings | {name: getattr(state, slider) for name, slider in place.sliders.items()}
    for name, value in values.items():
        session.settings = session.settings.with_value(name, value)
    if place.shape is not None:
        tabs.set_shape(session, place.shape, skeleton=place.skeleton)
    yield from _take_text(loaded, session)
    session.tab = place.tab
    if place.tab == "loss":
        yield from tabs.score_text(session, text=state.text)


def open_film(loaded: LoadedModel, tabs: OtherTabs, session: Session) -> Iterator[None]:
    """Open the film at the lesson's beat, with the lesson's text."""
    lesson = BY_KEY.get(session.state(LessonsState).lesson)
    if lesson is not None and lesson.beat:
        yield from _take_text(loaded, session)
        tabs.open_film(session, lesson.beat)


def _take_text(loaded: LoadedModel, session: Session) -> Iterator[None]:
    """Make the figure's text the document of the lesson's model, unless it already is, and select the figure's head.

    Raises ValueError if the text is empty or too long.
    """
    state = session.state(LessonsState)
    lesson, picture = BY_KEY[state.lesson], PICTURES.get(state.lesson)
    if lesson.place.model:
        loaded = yield from load_with_progress(session, lesson.place.model)
    has_text = picture is not None and picture.text is not None
    if has_text or lesson.place.model:
        text = state.text if has_text else lesson.place.text or EXAMPLE
        ids, document = Scene(loaded, text).ids(), session.document
        if document is None or document.loaded is not loaded or document.ids != ids or document.held:
            with admitted(session, loaded) as waiting:
                yield from waiting
                adopt(session, Generation(loaded, ids), text, Message("status.lesson"))
    if lesson.place.head is not None:
        session.selection = replace(session.selection, layer=lesson.place.head[0], head=lesson.place.head[1])
    if lesson.place.selects_head and picture is not None and session.document is not None:
        selection = replace(session.selection, layer=int(state.a))
        if picture.b is not None:
            selection = replace(selection, head=int(state.b))
        session.selection = selection.clamped_to(session.document.loaded.model.config, position=selection.position)


def analysis(loaded: LoadedModel) -> Analysis:
    """Return the analysis that uses this model to draw the open lesson's figure."""
    return Analysis(wanted, partial(draw_picture, loaded))


def wanted(s: Snapshot) -> FigureInputs | None:
    """Return the inputs for drawing the figure, or None if it is up to date or the lesson has none."""
    state = s.state(LessonsState)
    question = FigureInputs(state.lesson, s.language, state.text, state.a, state.b, state.choice, s.numbers)
    is_known = state.result is not None and state.result.request == question
    return None if state.lesson not in PICTURES or is_known else question


def draw_picture(loaded: LoadedModel, session: Session) -> Iterator[None]:
    """Draw the missing figure. If this fails, show the error and keep the previous figure."""
    with session.lock.reading():
        question = wanted(session.snapshot())
    if question is None:
        return
    lesson, language, text, a, b, choice, exact = question
    picture, scene = PICTURES[lesson], Scene(loaded, text, a, b, choice)
    before = session.state(LessonsState).drawn

    def work(progress: object) -> Drawn:
        threads = threads_for(0 if picture.writes_with is None else SMALL_WORK)
        with threads, speaking(language, exact=exact):
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
        _check_goal(session)
