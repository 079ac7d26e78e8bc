"""Shared by the tests of the Lessons tab: an open lesson, and the contents of its views."""

from __future__ import annotations

from components.state.session import Session
from components.tabs.lessons import handlers
from components.tabs.lessons.course import LESSONS
from components.tabs.lessons.views import lesson_views
from gpt import Generation, get_model
from tests.components.drawing import in_its_language

INDEX = {lesson.key: index for index, lesson in enumerate(LESSONS)}  # how the browser refers to a lesson


def new_session():
    document = Generation(get_model(), "The dog ran")
    document.read()
    return Session(document)


def finish(steps):
    for _ in steps:
        pass


def opened(session, key):
    assert handlers.open_lesson(get_model(), session, key)
    return drawn(session)


@in_its_language
def drawn(session):
    """Return the views after all requested analyses have run."""
    analysis = handlers.analysis(get_model())
    finish(analysis.run(session))
    assert analysis.wanted(session.snapshot()) is None
    return shown(session)


@in_its_language
def shown(session):
    snapshot = session.snapshot()
    return {view.name.removeprefix("lesson-"): view.draw(snapshot) for view in lesson_views(get_model())}
