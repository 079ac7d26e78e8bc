"""Where a lesson leads: its place in the app, and the film."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from components.state.admission import admitted
from components.state.adoption import adopt, load_with_progress
from components.state.session import Session
from components.state.settings import MoreControls
from components.state.snapshot import Message
from components.tabs.lessons.course import BY_KEY
from components.tabs.lessons.figure import EXAMPLE, Open, checked_ids
from components.tabs.lessons.pictures import PICTURES
from gpt import Generation, GPTConfig, LoadedModel


class SetShape(Protocol):
    def __call__(self, session: Session, config: GPTConfig, skeleton: bool = False) -> None: ...


class ScoreText(Protocol):
    def __call__(self, session: Session, *, text: str) -> Iterator[None]: ...


@dataclass(frozen=True)
class OtherTabs:
    """The lessons' actions in other tabs. `open_film` opens the film at the named beat."""

    set_shape: SetShape
    score_text: ScoreText
    open_film: Callable[[Session, str], None]


def open_place(loaded: LoadedModel, tabs: OtherTabs, session: Session) -> Iterator[None]:
    state = session.state(Open)
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
    session.change(MoreControls, open=True)
    if place.tab == "loss":
        yield from tabs.score_text(session, text=state.text)


def open_film(loaded: LoadedModel, tabs: OtherTabs, session: Session) -> Iterator[None]:
    lesson = BY_KEY.get(session.state(Open).lesson)
    if lesson is not None and lesson.beat:
        yield from _take_text(loaded, session)
        tabs.open_film(session, lesson.beat)


def _take_text(loaded: LoadedModel, session: Session) -> Iterator[None]:
    """Make the figure's text the document of the lesson's model, unless it already is, and select the figure's head.

    Raises ValueError if the text is empty or too long.
    """
    state = session.state(Open)
    lesson, picture = BY_KEY[state.lesson], PICTURES.get(state.lesson)
    if lesson.place.model:
        loaded = yield from load_with_progress(session, lesson.place.model)
    has_text = picture is not None and picture.text is not None
    if has_text or lesson.place.model:
        text = state.text if has_text else lesson.place.text or EXAMPLE
        ids, document = checked_ids(loaded, text), session.document
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
