"""The Lessons tab without a browser: how lessons open, their questions, and where they lead."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.i18n import t
from components.state.reads import Reads
from components.tabs.inside.film import open_film
from components.tabs.lessons.course import LESSONS, POEM
from components.tabs.lessons.figure import Open
from components.tabs.lessons.pictures import FIGURES
from components.tabs.lessons.questions import QUESTIONS, Number, parse_number
from components.tabs.lessons.tab import (
    OtherTabs,
    answer,
    facts,
    lesson_key,
    open_lesson,
    open_place,
    set_control,
)
from components.tabs.lessons.tab import open_film as open_lesson_film
from gpt import get_model
from gpt.models.sources import LLAMA_MODEL
from tests.components.tabs.lesson_session import INDEX, finish, new_page, opened, shown


@pytest.fixture
def loaded():
    return get_model()


@pytest.fixture
def page():
    return new_page()


def test_before_a_lesson_is_open_the_widget_is_left_to_ask_for_one(page, loaded):
    views = shown(page)
    assert views["head"]["open"] is views["body"]["open"] is None
    for wrong in ("3", None, True, []):
        assert not open_lesson(loaded, page.session, wrong)
        assert lesson_key(page.session) is None
    assert open_lesson(loaded, page.session, "shortcuts")
    assert lesson_key(page.session) == "shortcuts"
    assert "shortcuts-answer" in shown(page)
    assert not {"chart", "tying-answer"} & shown(page).keys(), "only the open lesson's panels are drawn"


def test_a_lesson_opens_with_its_controls_as_they_begin_and_asking_for_it_again_leaves_them(page):
    assert "In layer 0, head 0, “little”" in opened(page, "attention")["chart"]["text"]
    Open.layer.set(page.session, 3)
    Open.text.set(page.session, "The dog ran to the")
    assert "In layer 3, head 0, “the”" in opened(page, "attention")["chart"]["text"]
    opened(page, "loss")
    assert "In layer 0, head 0, “little”" in opened(page, "attention")["chart"]["text"]


WRITTEN = {
    "12": 12, " −1 ": -1, "１２": 12, "－０．５": -0.5, "+3": 3, "1e3": 1000, "2^10": 1024, "4²": 16,
    "10,000": 10_000, "1,234.5": 1234.5, "1.234,5": 1234.5, "10 000": 10_000, "1’000’000": 1e6, "１，０００": 1000,
    "0,5": 0.5, "0,204": 0.204, "3,5 nats": 3.5, ".5": 0.5, "0．２５": 0.25,
    "1/3": 1 / 3, "8/3 C": 8 / 3, "½": 0.5, "√24": 24**0.5, "1/√24": 24**-0.5, "1 / sqrt(24)": 24**-0.5,
    "2√3": 2 * 3**0.5, "-√2": -(2**0.5),
    "38.6 %": 0.386, "50％": 0.5, "百分之 5": 0.05, "5‰": 0.005,
    "38.6 million": 38.6e6, "38.6M": 38.6e6, "3860 万": 38.6e6, "38.6 百万个": 38.6e6, "1.5 亿": 1.5e8, "2k": 2000,
    "12 tokens": 12, "12 个": 12, "4x": 4, "4×": 4, "25 times": 25, "≈ 0.2": 0.2, "about 25": 25, "约 25 倍": 25,
}  # fmt: skip


@pytest.mark.parametrize("text", WRITTEN)
def test_a_number_may_be_typed_as_people_write_it(text):
    assert parse_number(text) == pytest.approx(WRITTEN[text])


NO_NUMBERS = ("", "ten", "nan", "inf", "1 2", "9" * 41, "9^9^9^9", "1/0", "(", "√", "-", "%", "四", "__import__", "1;2")


@pytest.mark.parametrize("text", [*NO_NUMBERS, 12, None])
def test_text_that_is_not_a_number_is_none(text):
    assert parse_number(text) is None


@given(st.text(max_size=40))
def test_any_text_is_a_number_or_none(text):
    number = parse_number(text)
    assert number is None or math.isfinite(number)


@pytest.mark.parametrize(
    ("lesson", "n", "right", "wrong", "part"),
    [
        ("configuration", 1, "24", "25", "wrong.1"),
        ("tokenizer", 1, "2", "1", "wrong.1"),
        ("positions", 1, 1, 2, "wrong.2"),
        ("feed_forward", 1, "768", "191", "hint"),
        ("shortcuts", 2, "6", "25", "2.wrong.1"),
        ("initialisation", 1, "1/√24", "1/√12", "wrong.1"),
        ("initialisation", 1, "0,204", "0,3", "hint"),
        ("parameters", 1, "3860 万", "124", "wrong.1"),
        ("untrained", 1, "0.024 %", "2.4", "hint"),
        ("untrained", 2, "8.32", "3.61", "2.wrong.2"),
        ("rms_norm", 1, "7/√25", "7/25", "wrong.2"),
    ],
)
def test_an_answer_is_checked_and_a_wrong_one_gets_a_reply_of_its_kind(page, loaded, lesson, n, right, wrong, part):
    def question():
        return shown(page, compute=False)["body"]["questions"][n - 1]

    open_lesson(loaded, page.session, lesson)
    assert question()["verdict"] == ""
    answer(page.session, {"question": n, "answer": wrong})
    reply = t(f"lesson.{lesson}.{part}", **facts(loaded.model.config))
    assert (question()["verdict"], question()["feedback"]) == ("wrong", f"Not yet. {reply}")
    answer(page.session, {"question": n, "answer": right})
    assert question()["verdict"] == "right"
    others = [each["verdict"] for i, each in enumerate(page.views["lesson-body"]["questions"]) if i != n - 1]
    assert set(others) == {""}
    open_lesson(loaded, page.session, "greedy")
    open_lesson(loaded, page.session, lesson)
    assert question()["verdict"] == ""


@pytest.mark.parametrize(
    "lesson",
    [
        pytest.param(key, marks=[pytest.mark.thorough] if key == "no_biases" else [])  # the slowest
        for key, asked in QUESTIONS.items()
        if any(isinstance(each, Number) for each in asked)
    ],
)
def test_the_right_answer_is_right_and_no_mistake_is(page, loaded, lesson):
    open_lesson(loaded, page.session, lesson)
    for question in QUESTIONS[lesson]:
        if isinstance(question, Number):
            if callable(question.expected):  # the number is computed with the figure
                shown(page)
            s = Reads(page.session.snapshot())
            right, *wrong = (each(s) if callable(each) else each for each in (question.expected, *question.mistakes))
            assert question.reply(repr(right), s).verdict == "right"
            for n, number in enumerate(wrong, 1):
                assert question.reply(repr(number), s).text == f"wrong.{n}"


@pytest.mark.parametrize(
    ("lesson", "moves"),
    [("sampling", {"temperature": 0}), ("attention", {"layer": 2, "head": 5}), ("activations", {"x": -0.75})],
)
def test_a_goal_is_reached_with_the_controls_and_stays_reached(page, lesson, moves):
    assert opened(page, lesson)["body"]["questions"][0]["verdict"] == ""
    first = {name: getattr(page.session.state(Open), name) for name in moves}
    for name, value in moves.items():
        set_control(getattr(Open, name), page.session, value)
    assert shown(page)["body"]["questions"][0]["verdict"] == "right"
    for name, value in first.items():
        set_control(getattr(Open, name), page.session, value)
    assert shown(page)["body"]["questions"][0]["verdict"] == "right"


@pytest.fixture
def session():
    session = new_page().session
    session.tab = "playground"
    return session


def other_tabs(calls, open_film=None):
    """Return actions in other tabs that are recorded in `calls`."""

    def score_text(session, *, text):
        calls.append(text)
        yield

    def set_shape(session, config, skeleton=False):
        calls.append((config, skeleton))

    return OtherTabs(set_shape, score_text, open_film or (lambda session, beat: calls.append(beat)))


def test_the_button_leads_to_the_place_with_the_text_settings_layer_and_shape_of_the_lesson(session, loaded):
    calls, own = [], session.document

    def go():
        finish(open_place(loaded, other_tabs(calls), session))

    go()
    assert session.tab == "playground", "no lesson is open"
    open_lesson(loaded, session, "attention")
    session.change(Open, layer=3, head=2, text="The dog ran to the")
    go()
    assert (session.tab, session.selection.layer, session.selection.head) == ("inside", 3, 2)
    assert session.document.ids == loaded.tokenizer.encode("The dog ran to the")
    assert session.document.n_read == len(session.document.ids)
    assert session.undo_stack[-1].file == own.to_json()
    carried = session.document
    go()
    assert session.document is carried, "it is the text already"
    Open.text.set(session, "")
    with pytest.raises(ValueError, match=r"\w"):
        go()
    open_lesson(loaded, session, "feed_forward")
    go()
    assert (session.selection.layer, session.selection.head) == (0, 2), "it has no head to say"
    open_lesson(loaded, session, "sampling")
    session.change(Open, temperature=0.5, top_k=7)
    go()
    assert (session.tab, session.settings.temperature, session.settings.top_k) == ("playground", 0.5, 7)
    assert calls == []
    open_lesson(loaded, session, "loss")
    go()
    assert (session.tab, calls.pop()) == ("loss", FIGURES["loss"].begins["text"])
    for key in ("parameters", "skeleton"):
        open_lesson(loaded, session, key)
        go()
        place = LESSONS[INDEX[key]].place
        assert (session.tab, calls.pop()) == ("shapes", (place.shape, key == "skeleton"))


def test_a_place_opens_with_its_lesson_s_text_even_if_another_lesson_is_opened_meanwhile(session, loaded, monkeypatch):
    def load(session, name):
        open_lesson(loaded, session, "attention")
        yield
        return get_model(name)

    monkeypatch.setattr("components.tabs.lessons.tab.load_with_progress", load)
    open_lesson(loaded, session, "verse")
    finish(open_place(loaded, other_tabs([]), session))
    assert session.document.text == POEM


@pytest.mark.parametrize(
    "lesson", [lesson for lesson in LESSONS if lesson.part == "llama"], ids=lambda lesson: lesson.key
)
def test_film_and_place_of_a_lesson_on_llama_show_its_model(session, loaded, lesson):
    open_lesson(loaded, session, lesson.key)
    finish(open_place(loaded, other_tabs([]), session))
    assert session.document.loaded.name == session.model == session.loaded.name == LLAMA_MODEL
    assert session.document.loaded.model.config.gated
    finish(open_lesson_film(loaded, other_tabs([], open_film), session))
    assert (session.tab, session.document.loaded.name) == ("inside", LLAMA_MODEL)
    assert session.film == lesson.beat
    if lesson.key == "rotary":
        open_lesson(loaded, session, "attention")
        finish(open_place(loaded, other_tabs([]), session))
        assert session.document.loaded is loaded, "and an earlier lesson its own again"
