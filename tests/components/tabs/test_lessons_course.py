"""The course: every lesson is complete, and its code is the project's code."""

from __future__ import annotations

import importlib
import inspect
import math
import re
from itertools import groupby
from pathlib import Path

import pytest

from components.i18n import t
from components.i18n.catalogue import CATALOGUES
from components.tabs.lessons import code_view
from components.tabs.lessons.code_view import Code, excerpt, printed
from components.tabs.lessons.course import LESSONS
from components.tabs.lessons.pictures import PICTURES
from components.tabs.lessons.questions import QUESTIONS, ChoiceQuestion, GoalQuestion, NumberQuestion
from components.tabs.lessons.tab import MINIMAL, facts, open_lesson
from gpt import get_model
from tests.components.drawing import spoken_in
from tests.components.tabs.lesson_session import INDEX, new_page, shown

CODES = [code for lesson in LESSONS for code in lesson.code]
ROOT = Path(__file__).parents[3]
LANGUAGES = ("en", "zh")


@pytest.fixture
def loaded():
    return get_model()


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


def test_a_printed_module_is_all_of_it_but_its_docstring_and_an_excerpt_stays_on_a_screen():
    shown = printed(f"{MINIMAL}.model")
    module = importlib.import_module(f"{MINIMAL}.model")
    lines = inspect.getsource(module).rstrip().split("\n")
    assert shown.text.split("\n") == lines[shown.line - 1 :]
    assert lines[: shown.line - 1] == [f'"""{module.__doc__}"""', ""]
    assert max(sum(len(excerpt(code).lines) for code in lesson.code) for lesson in LESSONS) <= 28


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


def test_every_lesson_is_whole_in_both_languages():
    page = new_page()
    assert len(LESSONS) == len({lesson.key for lesson in LESSONS})
    assert QUESTIONS.keys() == {lesson.key for lesson in LESSONS}
    assert PICTURES.keys() <= QUESTIONS.keys()
    for lesson in LESSONS:
        assert lesson.key in PICTURES or lesson.panels
        open_lesson(get_model(), page.session, lesson.key)
        for page.session.language in LANGUAGES:
            views = shown(page, compute=False)
            assert views["head"]["index"] == views["body"]["index"] == INDEX[lesson.key]
            assert views["body"]["idea"][0]["lines"]
            assert views["body"]["code"][0]["lines"]
            entry, body = views["head"]["lessons"][INDEX[lesson.key]], views["body"]
            texts = [
                text for each in body["questions"] for text in (each["question"], *each["choices"], each["answer"])
            ]
            assert "{" not in "".join([*entry.values(), *texts])


@pytest.mark.parametrize("lesson", [lesson.key for lesson in LESSONS])
def test_a_lesson_has_two_or_three_questions_and_a_text_for_every_answer(lesson):
    assert 2 <= len(QUESTIONS[lesson]) <= 3
    expected = {"title", "says"}
    for n, question in enumerate(QUESTIONS[lesson], 1):
        parts = {"question", "answer"}
        if isinstance(question, ChoiceQuestion):
            choices = range(1, question.n_choices + 1)
            parts |= {f"choice.{i}" for i in choices} | {f"wrong.{i}" for i in choices if i != question.right}
        elif isinstance(question, NumberQuestion):
            parts |= {"hint"} | {f"wrong.{i}" for i in range(1, len(question.mistakes) + 1)}
        else:
            assert isinstance(question, GoalQuestion)
        expected |= parts if n == 1 else {f"{n}.{part}" for part in parts}
    for language in LANGUAGES:
        beginning = f"lesson.{lesson}."
        texts = {key.removeprefix(beginning) for key in CATALOGUES[language] if key.startswith(beginning)}
        assert texts == expected


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
        said = spoken_in(language, t, f"lesson.{lesson}.says") + spoken_in(language, t, f"lesson.{lesson}.question")
        assert re.search(term, re.sub(r"{\w+}", "", said)), said


def test_the_facts_are_of_the_model(loaded):
    config = loaded.model.config
    assert facts(config)["uniform"] == f"{math.log(config.vocab_size):.2f}"


def test_the_course_builds_a_gpt_in_order_and_has_every_topic():
    parts = [part for part, _ in groupby(lesson.part for lesson in LESSONS)]
    assert parts == ["vectors", "layers", "attention", "model", "loss", "generation", "training", "use", "llama"]
    assert LESSONS[-1].key == "no_biases"
    assert {lesson.topic for lesson in LESSONS} == {*range(1, 21)}
    order = [lesson.key for lesson in LESSONS]
    for lesson in LESSONS:
        for name in re.findall(rf"from {MINIMAL}\.(\w+)", printed(f"{MINIMAL}.{lesson.key}").text):
            assert order.index(name) < order.index(lesson.key), "it needs only what earlier lessons wrote"
