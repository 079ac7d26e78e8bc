"""The questions of lessons: what is right, what gets a hint, which goals are reached."""

from __future__ import annotations

import pytest

from components.i18n import t
from components.tabs.lessons import handlers
from components.tabs.lessons.questions import parse_number
from components.tabs.lessons.state import LessonsState
from components.tabs.lessons.views import facts
from gpt import get_model
from tests.components.tabs.lesson_session import drawn, new_session, opened, shown


@pytest.fixture
def loaded():
    return get_model()


@pytest.fixture
def session():
    return new_session()


def test_a_number_may_be_typed_as_people_write_it():
    read = {text: parse_number(text) for text in ("12", " −1 ", "10,000", "0,5", "38.6 %", "1,234.5", "1e3")}
    assert [*read.values()] == [12, -1, 10_000, 0.5, 38.6, 1234.5, 1000]
    for wrong in ("", "ten", "nan", "inf", "1 2", "9" * 41, 12, None, [1]):
        assert parse_number(wrong) is None


@pytest.mark.parametrize(
    ("lesson", "right", "wrong"),
    [
        ("greedy", "12", "11"),
        ("tokenizer", "2", "1"),
        ("positions", 1, 2),
        ("layer_norm", "-1", "-0.71"),  # with the unbiased variance
        ("feed_forward", "768", "192"),
        ("shortcuts", "25", "6"),
        ("model", "3", "8"),
        ("loss", "2", "0.69"),
        ("untrained", "0.024", "2.4"),
        ("dropout", "2", "0.5"),
        ("initialisation", "0.20", "0.29"),
        ("parameters", "38.6", "124"),
        ("configuration", "24", "25"),
    ],
)
def test_an_answer_is_checked_and_a_wrong_one_gets_a_hint(session, loaded, lesson, right, wrong):
    assert opened(session, lesson)["body"]["verdict"] == ""
    handlers.answer(loaded, session, {"answer": wrong})
    body = shown(session)["body"]
    assert (body["verdict"], body["feedback"]) == (
        "wrong",
        f"Not yet. {t(f'lesson.{lesson}.hint', 'en', **facts(loaded.model.config))}",
    )
    handlers.answer(loaded, session, {"answer": right})
    assert shown(session)["body"]["verdict"] == "right"
    opened(session, "loss" if lesson == "greedy" else "greedy")
    assert opened(session, lesson)["body"]["verdict"] == ""


def test_whatever_a_browser_sends_as_an_answer_is_right_only_if_it_is(session, loaded):
    opened(session, "greedy")
    handlers.answer(loaded, session, {"answer": "many"})
    assert shown(session)["body"]["feedback"] == "Enter a number."
    opened(session, "block")
    for wrong in ("2", 0, 4, True, None, 2.0):
        handlers.answer(loaded, session, {"answer": wrong})
        assert session.state(LessonsState).verdict == ""
    opened(session, "sampling")
    handlers.answer(loaded, session, {"answer": "0"})
    assert session.state(LessonsState).verdict == ""


@pytest.mark.parametrize(
    ("lesson", "moves"), [("sampling", {"a": 0}), ("attention", {"a": 2, "b": 5}), ("activations", {"a": -0.75})]
)
def test_a_goal_is_reached_with_the_controls_and_stays_reached(session, loaded, lesson, moves):
    assert opened(session, lesson)["body"]["verdict"] == ""
    first = {name: getattr(session.state(LessonsState), name) for name in moves}
    for name, value in moves.items():
        handlers.move(loaded, name, session, value)
    assert drawn(session)["body"]["verdict"] == "right"
    for name, value in first.items():
        handlers.move(loaded, name, session, value)
    assert drawn(session)["body"]["verdict"] == "right"
