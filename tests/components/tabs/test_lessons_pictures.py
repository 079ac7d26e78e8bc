"""Lesson pictures and excerpts: complete, and compared with the model itself."""

from __future__ import annotations

import importlib
import inspect
import math
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
from components.tabs.lessons.pictures import PANELS, PICTURES, llama_pictures, model_pictures
from components.tabs.lessons.questions import QUESTIONS, ChoiceQuestion, GoalQuestion, NumberQuestion
from components.tabs.lessons.tab import move, open_lesson
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
    """Return the data of a lesson's figure; its first choice is chosen unless another is given."""
    controls = {"choice": (PICTURES[key].choices or ("",))[0]} | controls
    views = opened(page, key, **controls)
    assert views["notice"]["text"] == ""
    return views


def is_drawn(views):
    names = {"bars": "bars", "chart": "figure", "strip": "lines", "table": "rows"}
    return any(views[view][field] for view, field in names.items())


@pytest.mark.thorough
@pytest.mark.parametrize("key", sorted(PICTURES))
def test_every_picture_can_be_drawn_at_both_ends_of_its_controls(page, key):
    picture, config = PICTURES[key], get_model().model.config
    for end in ("low", "high"):
        a, b = (
            0 if knob is None else knob.low if end == "low" else knob.top(config) for knob in (picture.a, picture.b)
        )
        for choice in picture.choices or ("",):
            if key == "configuration":
                a, b = (64, 1) if end == "low" else (1600, 25)
            assert is_drawn(drawn(page, key, a=a, b=b, choice=choice))


OF_OTHER_MODELS = llama_pictures.PICTURES.keys() | {
    "training",
    "verse",
    "configuration",
    "untrained",
}


@pytest.mark.parametrize("key", sorted(PICTURES.keys() - OF_OTHER_MODELS))
def test_every_picture_can_be_drawn_of_the_smallest_models(key):
    config, letters = GPTConfig(3, 4, n_layer=1, n_head=1, n_embd=4), Characters(["a", "b", "\n"])
    tiny = LoadedModel("tiny", GPT(config).eval(), letters, torch.device("cpu"), "fp32")
    page = new_page()
    views = opened(page, key, loaded=tiny)
    assert len(letters.encode(page.session.state(Open).text)) <= config.block_size
    for moved in (0, 1, math.inf):
        for name in ("a", "b"):
            move(name, page.session, moved)
        views = {name.removeprefix("lesson-"): view for name, view in page.update().items()}
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
    effect = norm_effect(get_model(LLAMA_MODEL).model, checked_ids(get_model(LLAMA_MODEL), EXAMPLE), 0)
    assert effect.mean_after == pytest.approx(effect.mean_before / effect.rms_before, rel=0.01)
    assert abs(effect.mean_after) > abs(effect.mean_before)
    assert "becomes −0.05. Both bring the root mean square to 1.00" in drawn(page, "rms_norm", a=0)["chart"]["text"]


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
    written = {choice: drawn(page, "verse", choice=choice)["table"]["rows"][1:] for choice in HEADS}
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
    found = attrgetter(name)(importlib.import_module(module))
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
    assert PICTURES.keys() <= QUESTIONS.keys()
    for lesson in LESSONS:
        assert lesson.key in PICTURES or lesson.key in PANELS
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


def test_the_course_builds_a_gpt_in_order_and_has_every_topic():
    parts = [part for part, _ in groupby(lesson.part for lesson in LESSONS)]
    assert parts == ["vectors", "layers", "attention", "model", "loss", "generation", "training", "use", "llama"]
    assert LESSONS[-1].key == "no_biases"
    assert {lesson.topic for lesson in LESSONS} == {*range(1, 21)}
    lines = [printed(lesson.key).line for lesson in LESSONS]
    assert lines == sorted(lines), "the code is in the order of the lessons"
