"""The course: every lesson is whole, and its code is the code of the project."""

from __future__ import annotations

import importlib
import inspect
import math
import re
from itertools import groupby
from pathlib import Path

import pytest

from components.i18n import t
from components.tabs.lessons import code_view, handlers
from components.tabs.lessons.code_view import Code, excerpt
from components.tabs.lessons.course import LESSONS
from components.tabs.lessons.pictures import PICTURES
from components.tabs.lessons.questions import QUESTIONS
from components.tabs.lessons.views import MINIMAL, facts
from gpt import get_model
from tests.components.tabs.lesson_session import INDEX, new_session, shown

IDEAS = {lesson.key: [Code(MINIMAL, name) for name in lesson.idea] for lesson in LESSONS}
CODES = [code for lesson in LESSONS for code in (*IDEAS[lesson.key], *lesson.code)]
ROOT = Path(__file__).parents[3]
LANGUAGES = ("en", "zh")


@pytest.fixture
def loaded():
    return get_model()


@pytest.fixture
def session():
    return new_session()


@pytest.mark.parametrize("code", CODES, ids=lambda code: f"{code.module}.{code.name}")
def test_each_excerpt_is_what_python_finds_under_that_name(code):
    found = importlib.import_module(code.module)
    for part in code.name.split("."):
        found = getattr(found, part)
    shown = excerpt(code)
    file = (ROOT / shown.file).read_text(encoding="utf-8")
    source = inspect.getsource(inspect.unwrap(found)) if callable(found) else file
    lines = [line.strip() for line in shown.text.split("\n") if line]
    assert lines
    assert set(lines) <= {line.strip() for line in source.split("\n")} | {"@contextmanager", "@dataclass(frozen=True)"}
    assert file.split("\n")[shown.line - 1].strip() == lines[0]
    assert '"""' not in shown.text


def test_an_idea_has_at_most_twelve_lines_that_fit_and_an_excerpt_stays_on_a_screen():
    for lesson in LESSONS:
        lines = [line for code in IDEAS[lesson.key] for line in excerpt(code).text.split("\n")]
        assert len(lines) <= 12, lesson.key
        assert max(map(len, lines)) <= 88, lesson.key
        assert sum(len(excerpt(code).lines) for code in lesson.code) <= 20, lesson.key


@pytest.mark.parametrize(
    "code", [Code("gpt.nothing", "GPT"), Code("gpt.model", "GPT.nothing"), Code("gpt.model", "GPT.loss", ("x =",))]
)
def test_what_is_not_there_is_not_shown(code):
    with pytest.raises(LookupError):
        excerpt(code)


def test_colours_change_no_letter():
    text = inspect.getsource(code_view)
    assert ["".join(piece for _, piece in line) for line in code_view.colour(text)] == text.split("\n")
    kinds = dict(code_view.colour("def f(x):  # why")[0])
    assert kinds == {"k": "def", "d": "f", "c": "# why", "": "(x):  "}
    assert code_view.colour("a = '''b\nc'''")[1] == (("s", "c'''"),)


def test_every_lesson_is_whole_in_both_languages(session):
    assert len(LESSONS) == len({lesson.key for lesson in LESSONS})
    assert QUESTIONS.keys() == {lesson.key for lesson in LESSONS}
    assert PICTURES.keys() <= QUESTIONS.keys()
    for lesson in LESSONS:
        assert lesson.key in PICTURES or lesson.panels
        handlers.open_lesson(get_model(), session, INDEX[lesson.key])
        for session.language in LANGUAGES:
            views = shown(session)
            assert views["head"]["index"] == views["body"]["index"] == INDEX[lesson.key]
            assert views["body"]["idea"][0]["lines"]
            assert views["body"]["code"][0]["lines"]
            entry, body = views["head"]["lessons"][INDEX[lesson.key]], views["body"]
            assert "{" not in "".join([*entry.values(), body["question"], *body["choices"], body["answer"]])


@pytest.mark.parametrize(
    ("lesson", "english", "chinese"),
    [
        ("model", "decoder-only", "仅解码器（decoder-only）"),
        ("greedy", "autoregressive", "自回归（autoregressive）"),
        ("positions", "sinusoidal positions", "正弦位置编码"),
        ("block", "post-norm", "post-norm"),
    ],
)
def test_the_terms_of_the_curriculum_are_named_where_they_belong(lesson, english, chinese):
    for language, term in zip(LANGUAGES, (english, chinese), strict=True):
        said = t(f"lesson.{lesson}.says", language) + t(f"lesson.{lesson}.question", language)
        assert re.search(term, re.sub(r"{\w+}", "", said)), said


def test_the_facts_are_of_the_model(loaded):
    config = loaded.model.config
    assert facts(config)["uniform"] == f"{math.log(config.vocab_size):.2f}"


def test_the_course_begins_with_the_prediction_and_ends_with_todays_models_and_has_every_topic():
    parts = [part for part, _ in groupby(lesson.part for lesson in LESSONS)]
    assert parts == ["prediction", "tokens", "sampling", "attention", "block", "model", "training", "details", "llama"]
    assert LESSONS[-1].key == "no_biases"
    assert {lesson.topic for lesson in LESSONS} == {*range(1, 21)}
