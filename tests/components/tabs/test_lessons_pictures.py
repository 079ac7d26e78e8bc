"""Lesson pictures and excerpts: complete, and compared with the model itself."""

from __future__ import annotations

import importlib
import inspect
import re
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from components.i18n import t
from components.i18n.catalogue import CATALOGUES
from components.panels import initialisation
from components.tabs.lessons.code_view import excerpt, printed
from components.tabs.lessons.course import HEADS, LESSONS, POEM
from components.tabs.lessons.figure import EXAMPLE, Open, checked_ids
from components.tabs.lessons.pictures import FIGURES, PANELS, model_pictures
from components.tabs.lessons.questions import N_CHOICES, QUESTIONS
from components.tabs.lessons.tab import open_lesson, set_control
from gpt import GPT, GPTConfig, LoadedModel, get_model, trace_text
from gpt.experiments.architectures import norm_effect
from gpt.experiments.initialisation import residual_norms
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.sources import LLAMA_MODEL, POEMS_MODEL
from tests.components.tabs.lesson_session import INDEX, new_page, opened, shown


@pytest.fixture
def page():
    return new_page()


def drawn(page, key, **controls):
    """Return the data of a lesson's figure with these values of its controls."""
    views = opened(page, key, **controls)
    assert views["notice"]["text"] == ""
    return views


def is_drawn(views):
    names = {"bars": "bars", "chart": "figure", "strip": "lines", "table": "rows"}
    return any(views[view][field] for view, field in names.items())


def moves(key, s):
    """Yield values of a figure's controls: all sliders at one end and at the other, with each choice."""
    settings = [getattr(Open, name) for name in FIGURES[key].begins if name != "text"]
    sliders = [each for each in settings if each.choices is None]
    choices = [[{each.name: value} for _, value in each.options(s)] for each in settings if each not in sliders]
    for ends in [(each.low for each in sliders), (each.limit(s) for each in sliders)]:
        moved = {each.name: type(each.default)(end) for each, end in zip(sliders, ends, strict=True)}
        for chosen in choices[0] if choices else ({},):
            yield moved | chosen


@pytest.mark.thorough
@pytest.mark.parametrize("key", sorted(FIGURES))
def test_every_figure_can_be_drawn_at_both_ends_of_its_controls(page, key):
    opened(page, key)
    for moved in moves(key, page.session.snapshot()):
        assert is_drawn(drawn(page, key, **moved))


OF_OTHER_MODELS = {"rotary", "rms_norm", "swiglu", "grouped_queries", "no_biases", "training", "verse", "untrained"}


@pytest.mark.parametrize("key", sorted(FIGURES.keys() - OF_OTHER_MODELS - {"configuration"}))
def test_every_figure_can_be_drawn_of_the_smallest_models(key):
    config, letters = GPTConfig(3, 4, n_layer=1, n_head=1, n_embd=4), Characters(["a", "b", "\n"])
    tiny = LoadedModel("tiny", GPT(config).eval(), letters, torch.device("cpu"), "fp32")
    page = new_page()
    opened(page, key, loaded=tiny)
    assert len(letters.encode(page.session.state(Open).text)) <= config.block_size
    for moved in ({}, *moves(key, page.session.snapshot())):
        for name, value in moved.items():
            set_control(getattr(Open, name), page.session, value)
        views = shown(page)
        assert views["notice"]["text"] == ""
        assert is_drawn(views)


@pytest.mark.parametrize("n_layer", [4, 24])
def test_vectors_grow_as_the_lesson_on_initialisation_says(n_layer):
    config = initialisation.config_of(
        {initialisation.Chosen: SimpleNamespace(width=128, vocabulary=4096, layers=n_layer)}
    )
    _, lengths = residual_norms(config, seed=0)
    growth = f"{lengths[-1] / lengths[0]:.1f}"
    assert re.search(rf"{growth} times( their length)? with {n_layer}", t("lesson.initialisation.answer"))


def test_rms_norm_divides_the_mean_too_even_in_the_first_layer(page):
    before, after = norm_effect(get_model(LLAMA_MODEL).model, checked_ids(get_model(LLAMA_MODEL), EXAMPLE), 0)
    assert after.mean == pytest.approx(before.mean / before.rms, rel=0.01)
    assert abs(after.mean) > abs(before.mean)
    assert (
        "becomes −0.05. Both bring the root mean square to 1.00"
        in drawn(page, "rms_norm", shared_layer=0)["chart"]["text"]
    )


@pytest.mark.parametrize(("choice", "least"), [("counts", 0.9), ("rhymes", 0.9), ("above", 0.6)])
def test_the_heads_of_the_lesson_look_where_it_says(choice, least):
    layer, head = HEADS[choice]
    poems = get_model(POEMS_MODEL)
    weights = trace_text(poems.model, checked_ids(poems, POEM, whole=True)).layers[layer].attn_weights[0, head]
    looked = model_pictures.looked_at(choice)
    assert sum(weights[i, j].item() for i, j in looked) / len(looked) > least


@pytest.mark.thorough
def test_without_the_head_that_counts_verses_lose_their_length_and_without_the_one_that_rhymes_only_the_rhyme(
    page,
):
    written = {choice: drawn(page, "verse", verse=choice)["table"]["rows"][1:] for choice in HEADS}
    (_, whole), (_, uncounted) = written["counts"]
    (_, again), (_, unrhymed) = written["rhymes"]
    assert whole == again

    def lengths(poem):
        return {len(verse) for verse in re.split("[，。\n]+", poem)[:-1]}

    assert lengths(whole) == lengths(unrhymed) == {5}
    assert len(lengths(uncounted)) > 1
    ends = [set(re.findall("(.)。", poem)) for poem in (whole, unrhymed)]
    assert ends[0] == set("苍长忙伤")
    assert not ends[1] & set("苍长忙伤")


CODES = [code for lesson in LESSONS for code in lesson.code.split()]
ROOT = Path(__file__).parents[3]
LANGUAGES = ("en", "zh")


@pytest.mark.parametrize("code", CODES, ids=str)
def test_each_excerpt_is_what_python_finds_under_that_name(code):
    module, _, name = code.partition(":")
    found = attrgetter(name)(importlib.import_module(f"gpt.{module}"))
    shown = excerpt(code)
    file = (ROOT / shown.file).read_text(encoding="utf-8")
    source = inspect.getsource(inspect.unwrap(found)) if callable(found) else file
    lines = [line.strip() for line in shown.text.split("\n") if line]
    assert lines
    assert set(lines) <= {line.strip() for line in source.split("\n")} | {"@contextmanager", "@dataclass(frozen=True)"}
    assert file.split("\n")[shown.line - 1].strip() == lines[0]
    assert '"""' not in shown.text


def test_every_lesson_is_whole_in_both_languages():
    page = new_page()
    assert len(LESSONS) == len({lesson.key for lesson in LESSONS})
    assert QUESTIONS.keys() == {lesson.key for lesson in LESSONS}
    assert FIGURES.keys() <= QUESTIONS.keys()
    for lesson in LESSONS:
        assert lesson.key in FIGURES or lesson.key in PANELS
        open_lesson(get_model(), page.session, lesson.key)
        for page.session.language in LANGUAGES:
            views = shown(page, compute=False)
            assert views["head"]["open"] == views["body"]["open"] == lesson.key
            assert views["body"]["idea"][0]["lines"]
            assert views["body"]["code"][0]["lines"]
            entry, body = views["head"]["items"][INDEX[lesson.key]], views["body"]
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
        if question.kind == "choice":
            choices = range(1, N_CHOICES + 1)
            parts |= {f"choice.{i}" for i in choices} | {f"wrong.{i}" for i in choices if i != question.answer}
        elif question.kind == "number":
            parts |= {"hint"} | {f"wrong.{i}" for i in range(1, len(question.mistakes) + 1)}
        else:
            assert question.kind == "goal"
        expected |= parts if n == 1 else {f"{n}.{part}" for part in parts}
    for language in LANGUAGES:
        beginning = f"lesson.{lesson}."
        texts = {key.removeprefix(beginning) for key in CATALOGUES[language] if key.startswith(beginning)}
        assert texts == expected


def test_the_course_builds_a_gpt_in_order_and_has_every_topic():
    parts = [part for part, _ in groupby(lesson.part for lesson in LESSONS)]
    assert parts == ["vectors", "layers", "attention", "model", "loss", "generation", "training", "use", "llama"]
    assert LESSONS[-1].key == "no_biases"
    assert {lesson.topic for lesson in LESSONS} == {*range(1, 21)}
    lines = [printed(lesson.key).line for lesson in LESSONS]
    assert lines == sorted(lines), "the code is in the order of the lessons"
