"""Lesson questions: correct answers, mistakes that get a hint, and goals that are reached."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.i18n import t
from components.state.reads import Reads
from components.tabs.lessons.figure import Open
from components.tabs.lessons.questions import QUESTIONS, NumberQuestion, parse_number
from components.tabs.lessons.tab import answer, facts, move, type_text
from gpt import get_model
from tests.components.tabs.lesson_session import new_page, opened, shown


@pytest.fixture
def loaded():
    return get_model()


@pytest.fixture
def page():
    return new_page()


WRITTEN = {
    "12": 12, " −1 ": -1, "１２": 12, "－０．５": -0.5, "+3": 3, "1e3": 1000, "2^10": 1024, "4²": 16,
    "10,000": 10_000, "1,234.5": 1234.5, "1.234,5": 1234.5, "10 000": 10_000, "1’000’000": 1e6, "１，０００": 1000,
    "0,5": 0.5, "0,204": 0.204, "3,5 nats": 3.5, ".5": 0.5, "0．２５": 0.25,
    "1/3": 1 / 3, "8/3 C": 8 / 3, "½": 0.5, "√24": 24**0.5, "1/√24": 24**-0.5, "1 / sqrt(2 * 12)": 24**-0.5,
    "2√3": 2 * 3**0.5, "(7 − 4)/3": 1, "-√2": -(2**0.5),
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


@given(st.floats(-1e9, 1e9, allow_nan=False).map(lambda x: round(x, 2)), st.sampled_from(["", " %", " 个", " tokens"]))
def test_a_number_is_read_in_every_notation(number, unit):
    factor = 0.01 if unit == " %" else 1
    english = f"{number:,.2f}"
    german = english.translate(str.maketrans(",.", ".,"))
    spaced, full_width = (
        english.replace(",", " "),
        english.translate({ord(c): ord(c) + 0xFEE0 for c in "0123456789,.-"}),
    )
    for text in (english, german, spaced, full_width, f"{number:.2f}", english.replace("-", "−")):
        assert parse_number(text + unit) == pytest.approx(factor * number)


@given(st.text(max_size=40))
def test_any_text_is_a_number_or_none(text):
    number = parse_number(text)
    assert number is None or math.isfinite(number)


@pytest.mark.parametrize(
    ("lesson", "n", "right", "wrong", "part"),
    [
        ("configuration", 1, "24", "25", "wrong.1"),
        ("tokenizer", 1, "2", "1", "wrong.1"),
        ("embedding", 1, "192", "4096", "wrong.1"),
        ("positions", 1, 1, 2, "wrong.2"),
        ("layer_norm", 1, "−1", "-1/√2", "wrong.1"),
        ("feed_forward", 1, "768", "191", "hint"),
        ("average", 1, "1/4", "33.3 %", "wrong.1"),
        ("shortcuts", 1, "25", "6", "wrong.1"),
        ("shortcuts", 2, "6", "25", "2.wrong.1"),
        ("model", 1, "3", "8", "hint"),
        ("initialisation", 1, "1/√24", "1/√12", "wrong.1"),
        ("initialisation", 1, "0,204", "0,3", "hint"),
        ("parameters", 1, "38,597,376", "124.4M", "wrong.1"),
        ("parameters", 1, "3860 万", "124", "wrong.1"),
        ("untrained", 1, "0.024 %", "2.4", "hint"),
        ("untrained", 1, "1/4096", "0.5", "hint"),
        ("untrained", 2, "8.32", "12", "2.wrong.1"),
        ("untrained", 2, "8.32", "3.61", "2.wrong.2"),
        ("loss", 1, "2", "0.69", "wrong.1"),
        ("schedule", 1, "0.06 %", "6e-3", "wrong.1"),
        ("dropout", 1, "2", "50 %", "wrong.1"),
        ("swiglu", 1, "8/3", "4C", "wrong.1"),
        ("rms_norm", 1, "7/√25", "7/25", "wrong.2"),
    ],
)
def test_an_answer_is_checked_and_a_wrong_one_gets_a_reply_of_its_kind(page, loaded, lesson, n, right, wrong, part):
    def question():
        return shown(page)["body"]["questions"][n - 1]

    opened(page, lesson)
    assert question()["verdict"] == ""
    answer(page.session, {"question": n, "answer": wrong})
    reply = t(f"lesson.{lesson}.{part}", **facts(loaded.model.config))
    assert (question()["verdict"], question()["feedback"]) == ("wrong", f"Not yet. {reply}")
    answer(page.session, {"question": n, "answer": right})
    assert question()["verdict"] == "right"
    others = [each["verdict"] for i, each in enumerate(shown(page)["body"]["questions"]) if i != n - 1]
    assert set(others) == {""}
    opened(page, "loss" if lesson == "greedy" else "greedy")
    opened(page, lesson)
    assert question()["verdict"] == ""


@pytest.mark.parametrize("lesson", QUESTIONS)
def test_the_right_answer_is_right_and_no_mistake_is(page, lesson):
    opened(page, lesson)
    s = Reads(page.session.snapshot())
    for question in QUESTIONS[lesson]:
        if isinstance(question, NumberQuestion):
            right, *wrong = (each(s) if callable(each) else each for each in (question.expected, *question.mistakes))
            assert question.reply(repr(right), s).verdict == "right"
            for n, number in enumerate(wrong, 1):
                assert question.reply(repr(number), s).text == f"wrong.{n}"


def test_only_a_right_answer_counts_whatever_the_browser_sends(page):
    def verdicts():
        return [each["verdict"] for each in shown(page)["body"]["questions"]]

    opened(page, "greedy")
    answer(page.session, {"question": 1, "answer": "many"})
    assert "Enter a number" in shown(page)["body"]["questions"][0]["feedback"]
    opened(page, "block")
    for wrong in ("2", 0, 4, True, None, 2.0):
        answer(page.session, {"question": 1, "answer": wrong})
    for n in (0, 3, "1", None, True):
        answer(page.session, {"question": n, "answer": 2})
    assert verdicts() == ["", ""]
    opened(page, "sampling")
    answer(page.session, {"question": 1, "answer": "0"})
    assert verdicts() == ["", "", ""]


def test_a_head_must_find_the_token_before_among_several(page, loaded):
    opened(page, "attention")
    for text, n in (("Tom ran", 2), ("Tom and Lily", 3)):
        type_text(page.session, text)
        assert len(loaded.tokenizer.encode(text)) == n
        for head in range(6):
            move("a", page.session, 2)
            move("b", page.session, head)
            assert shown(page)["body"]["questions"][0]["verdict"] == ""


@pytest.mark.parametrize(
    ("lesson", "moves"), [("sampling", {"a": 0}), ("attention", {"a": 2, "b": 5}), ("activations", {"a": -0.75})]
)
def test_a_goal_is_reached_with_the_controls_and_stays_reached(page, lesson, moves):
    assert opened(page, lesson)["body"]["questions"][0]["verdict"] == ""
    first = {name: getattr(page.session.state(Open), name) for name in moves}
    for name, value in moves.items():
        move(name, page.session, value)
    assert shown(page)["body"]["questions"][0]["verdict"] == "right"
    for name, value in first.items():
        move(name, page.session, value)
    assert shown(page)["body"]["questions"][0]["verdict"] == "right"
