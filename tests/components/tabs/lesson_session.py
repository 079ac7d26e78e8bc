"""Shared by the tests of the Lessons tab: the tab on a page, an open lesson, and the data of its views."""

from __future__ import annotations

from components.state.session import Session
from components.tabs.lessons.course import LESSONS
from components.tabs.lessons.figure import Open
from components.tabs.lessons.tab import OtherTabs, lessons, open_lesson
from gpt import get_model
from tests.components.drawing import Drawn, as_read

INDEX = {lesson.key: index for index, lesson in enumerate(LESSONS)}  # how the browser refers to a lesson


def new_page():
    document = as_read(get_model(), "The dog ran")
    return Drawn(Session(document), lessons(get_model(), OtherTabs(None, None, None)))


def finish(steps):
    list(steps)


def opened(page, key, *, loaded=None, **controls):
    """Open a lesson, set controls without their handlers, and return the data of its views."""
    assert open_lesson(loaded or get_model(), page.session, key)
    page.session.change(Open, **controls)
    return shown(page)


def shown(page, *, compute=True):
    """Return the data of the tab's views. Those of a figure have no name of their own."""
    figure, views = f"figure-{page.session.state(Open).lesson}-", page.update(compute=compute)
    return {name.removeprefix("lesson-").removeprefix(figure): data for name, data in views.items()}
