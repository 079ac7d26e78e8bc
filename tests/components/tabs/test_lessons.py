"""The Lessons tab without a browser: how lessons open, their controls and figures."""

from __future__ import annotations

import contextlib
import math
import threading
from copy import deepcopy

import pytest

from components.state.reads import is_ready
from components.tabs.lessons.course import LESSONS
from components.tabs.lessons.figure import EXAMPLE, Open
from components.tabs.lessons.pictures import text_pictures, training_pictures
from components.tabs.lessons.tab import choose, choose_lesson, lesson_key, move, open_lesson, type_text
from gpt import get_model
from tests.components.tabs.lesson_session import INDEX, new_page, opened, shown


@pytest.fixture
def loaded():
    return get_model()


@pytest.fixture
def page():
    return new_page()


def test_before_a_lesson_is_open_the_widget_is_left_to_ask_for_one(page, loaded):
    views = shown(page)
    assert views["head"]["index"] is views["body"]["index"] is None
    for wrong in (-1, len(LESSONS), "3", None, True, 1.0):
        choose_lesson(loaded, page.session, {"lesson": wrong})
        assert lesson_key(page.session) is None
    choose_lesson(loaded, page.session, {"lesson": INDEX["shortcuts"]})
    assert lesson_key(page.session) == "shortcuts"
    assert "shortcuts-answer" in shown(page)
    assert not {"chart", "tying-answer"} & shown(page).keys(), "only the open lesson's panels are drawn"


def test_a_lesson_opens_with_its_controls_as_they_begin_and_asking_for_it_again_leaves_them(page):
    assert "In layer 0, head 0, “little”" in opened(page, "attention")["chart"]["text"]
    move("a", page.session, 3)
    type_text(page.session, "The dog ran to the")
    assert "In layer 3, head 0, “the”" in opened(page, "attention")["chart"]["text"]
    opened(page, "loss")
    assert page.session.state(Open).a == 0
    assert "In layer 0, head 0, “little”" in opened(page, "attention")["chart"]["text"]


def test_whatever_a_browser_sends_a_control_keeps_a_value_that_it_can_have(page, loaded):
    session = page.session
    opened(page, "attention")
    last = loaded.model.config.n_layer - 1
    for sent, kept in ((10**9, last), (-1, 0), ("2", 0), (None, 0), (True, 0), (math.nan, 0)):
        move("a", session, sent)
        assert session.state(Open).a == kept
    for sent in (None, 7, ["a"]):
        type_text(session, sent)
        choose(session, sent)
    assert (session.state(Open).text, session.state(Open).choice) == (EXAMPLE, "")
    type_text(session, "x" * 10**5)
    assert "too long" in shown(page)["notice"]["text"]
    opened(page, "next")
    move("b", session, 3)
    choose(session, "gpt2-xl")
    choose(session, "gpt3")
    assert (session.state(Open).b, session.state(Open).choice) == (0, "gpt2-xl")


def test_what_cannot_be_drawn_is_said_in_the_language_of_the_page_and_the_picture_stays(page):
    before = deepcopy(opened(page, "configuration"))
    move("b", page.session, 10)
    views = shown(page)
    assert "768" in views["notice"]["text"]
    for name in ("chart", "says"):
        assert views[name] == before[name] | {"waiting": True}
    page.session.language = "zh"
    assert "宽度 768" in shown(page)["notice"]["text"]
    move("b", page.session, 8)
    views = shown(page)
    assert (views["notice"]["text"], views["says"]["waiting"]) == ("", False)
    assert views["says"]["text"] != before["says"]["text"]


def test_a_figure_waits_with_its_last_drawing_but_never_with_that_of_another_lesson(page, loaded):
    before = opened(page, "greedy")["says"]["text"]
    move("a", page.session, 3)
    views = shown(page, compute=False)
    assert (views["says"]["text"], views["says"]["waiting"]) == (before, True)
    open_lesson(loaded, page.session, "loss")
    views = shown(page, compute=False)
    assert views["chart"]["figure"] is None
    assert (views["says"]["text"], views["strip"]["lines"]) == ("", [])


@pytest.mark.thorough
def test_while_the_tiny_model_learns_the_page_says_so(page, loaded):
    training_pictures._run.cache_clear()
    open_lesson(loaded, page.session, "training")
    assert "Training a tiny model" in shown(page, compute=False)["says"]["text"]
    assert shown(page)["says"]["text"].startswith("After 0 updates the model writes:")
    again = new_page()
    open_lesson(loaded, again.session, "training")
    assert shown(again, compute=False)["says"]["text"] == "", "it is learned once"


def test_a_figure_that_writes_waits_for_a_place_and_gives_it_back(page, loaded):
    admission = loaded.engine.admission
    open_lesson(loaded, page.session, "greedy")
    with contextlib.ExitStack() as others:
        for _ in range(admission.limit):
            others.enter_context(admission.enter())
        waiting = threading.Thread(target=lambda: shown(page))
        waiting.start()
        while not admission.n_waiting:
            pass
        assert not is_ready(page.session.snapshot(), text_pictures.greedily)
    waiting.join()
    assert len(shown(page)["strip"]["lines"]) > 12
    assert admission.n_admitted == 0


def test_a_small_share_in_a_figure_is_written_as_the_page_writes_numbers(page):
    assert "under 1%" in str(opened(page, "configuration")["chart"])
    page.session.language = "zh"
    assert "不到 1%" in str(shown(page)["chart"])
    page.session.numbers = True
    assert "0.63%" in str(shown(page)["chart"])
