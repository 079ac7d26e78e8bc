"""The Lessons tab without a browser: how lessons open, their controls and pictures."""

from __future__ import annotations

import contextlib
import math

import pytest

from components.tabs.lessons import handlers
from components.tabs.lessons.course import LESSONS
from components.tabs.lessons.pictures import picture, training_pictures
from components.tabs.lessons.state import LessonsState, is_lesson_open
from gpt import get_model
from tests.components.tabs.lesson_session import INDEX, drawn, finish, new_session, opened, shown


@pytest.fixture
def loaded():
    return get_model()


@pytest.fixture
def session():
    return new_session()


def test_before_a_lesson_is_open_the_widget_is_left_to_ask_for_one(session, loaded):
    views = shown(session)
    assert views["head"]["index"] is None
    assert views["body"] == {"index": None}
    for wrong in (-1, len(LESSONS), "3", None, True, 1.0):
        handlers.choose_lesson(loaded, session, {"lesson": wrong})
        assert session.state(LessonsState).lesson == ""
    handlers.choose_lesson(loaded, session, {"lesson": INDEX["tokenizer"]})
    assert is_lesson_open("tokenizer", session.snapshot())
    handlers.choose_lesson(loaded, session, {"lesson": INDEX["shortcuts"]})
    assert handlers.wanted(session.snapshot()) is None, "a lesson of panels has no picture of its own"


def test_a_lesson_opens_with_its_controls_as_they_begin_and_asking_for_it_again_leaves_them(session, loaded):
    assert "In layer 0, head 0, “little”" in opened(session, "attention")["chart"]["text"]
    handlers.move(loaded, "a", session, 3)
    handlers.type_text(session, "The dog ran to the")
    assert "In layer 3, head 0, “the”" in opened(session, "attention")["chart"]["text"]
    opened(session, "loss")
    assert session.state(LessonsState).a == 0
    assert "In layer 0, head 0, “little”" in opened(session, "attention")["chart"]["text"]


def test_whatever_a_browser_sends_a_control_keeps_a_value_that_it_can_have(session, loaded):
    opened(session, "attention")
    last = loaded.model.config.n_layer - 1
    for sent, kept in ((10**9, last), (-1, 0), ("2", 0), (None, 0), (True, 0), (math.nan, 0)):
        handlers.move(loaded, "a", session, sent)
        assert session.state(LessonsState).a == kept
    for sent in (None, 7, ["a"]):
        handlers.type_text(session, sent)
        handlers.choose(session, sent)
    assert (session.state(LessonsState).text, session.state(LessonsState).choice) == (picture.EXAMPLE, "")
    handlers.type_text(session, "x" * 10**5)
    assert "too long" in drawn(session)["notice"]["text"]
    opened(session, "next")
    handlers.move(loaded, "b", session, 3)
    handlers.choose(session, "gpt2-xl")
    handlers.choose(session, "gpt3")
    assert (session.state(LessonsState).b, session.state(LessonsState).choice) == (0, "gpt2-xl")


def test_what_cannot_be_drawn_is_said_in_the_language_of_the_page_and_the_picture_stays(session, loaded):
    before = opened(session, "configuration")
    handlers.move(loaded, "b", session, 10)
    views = drawn(session)
    assert "768" in views["notice"]["text"]
    assert (views["chart"], views["says"]) == (before["chart"], before["says"])
    session.language = "zh"
    assert "宽度 768" in drawn(session)["notice"]["text"]
    handlers.move(loaded, "b", session, 8)
    views = drawn(session)
    assert views["notice"]["text"] == ""
    assert views["says"] != before["says"]


def test_the_picture_of_another_lesson_is_never_shown(session, loaded):
    opened(session, "greedy")
    handlers.open_lesson(loaded, session, "loss")
    views = shown(session)
    assert views["chart"]["figure"] is None
    assert (views["says"]["text"], views["strip"]["lines"]) == ("", [])


def test_while_the_tiny_model_learns_the_page_says_so(session, loaded):
    training_pictures._run.cache_clear()
    handlers.open_lesson(loaded, session, "training")
    assert "Training a tiny model" in shown(session)["says"]["text"]
    assert drawn(session)["says"]["text"].startswith("After 0 updates the model writes:")
    opened(session, "greedy")
    handlers.open_lesson(loaded, session, "training")
    assert shown(session)["says"]["text"] == "", "it is learned once"


def test_a_picture_that_writes_waits_for_a_place_and_gives_it_back(session, loaded):
    admission = loaded.engine.admission
    handlers.open_lesson(loaded, session, "greedy")
    with contextlib.ExitStack() as others:
        for _ in range(admission.limit):
            others.enter_context(admission.enter())
        steps = handlers.draw_picture(loaded, session)
        next(steps)
        assert session.state(LessonsState).drawn is None
    finish(steps)
    assert len(shown(session)["strip"]["lines"]) > 12
    assert admission.n_admitted == 0


def test_a_small_share_in_a_figure_is_written_as_the_page_writes_numbers(session):
    assert "under 1%" in str(opened(session, "configuration")["chart"])
    session.language = "zh"
    assert "不到 1%" in str(drawn(session)["chart"])
    session.numbers = True
    assert "0.63%" in str(drawn(session)["chart"])
