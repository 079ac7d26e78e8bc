"""The Compare tab without a browser: what the two columns and the beam search show, and what is refused."""

from __future__ import annotations

import itertools
import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from components.state.settings import LIMITS
from components.tabs.compare import beam_views, searching, writing
from components.tabs.compare import views as compare_views
from components.tabs.compare.beam_views import tree_words
from components.tabs.compare.figures import divergence_bars
from components.tabs.compare.memory import Memory
from components.tabs.compare.pair import Pair
from components.widgets import beams as tree
from gpt import GPT, Generation, GPTConfig, LoadedModel, SamplingParams, get_model, list_models
from gpt.documents.beam_search import BeamSearch
from gpt.models.checkpoints.vocabularies import PlainIds

PROMPT = "Once upon a time, there was a little girl named Lily. She"
COLD, HOT = SamplingParams(0.3, seed=1), SamplingParams(1.5, seed=1)


def written(left=COLD, right=HOT, *, models=("stories", "stories"), length=6, prompt=PROMPT):
    pair = Pair(tuple(get_model(name) for name in models), prompt, (left, right))
    pair.read()
    for _ in pair.steps(length):
        pass
    pair.read()
    pair.comparison.measure()
    return pair


def with_another_vocabulary():
    config = GPTConfig(vocab_size=12, block_size=24, n_layer=1, n_head=1, n_embd=8)
    return LoadedModel("other", GPT(config).eval(), PlainIds(12), torch.device("cpu"), "fp32")


# the figure


def test_the_bars_are_the_divergences_and_an_infinite_one_reaches_the_top_with_its_sign():
    raw, final = np.array([0.5, 2.0, 0.0]), np.array([1.0, math.inf, 3.0])
    figure = divergence_bars(raw, final, ["a", "<b>", " c"], selected=1, bits_title="bits")
    top = figure.layout.yaxis.range[1]
    assert list(figure.data[0].y) == [0.5, 2.0, 0.0]
    assert list(figure.data[1].y) == pytest.approx([1.0, top, 3.0])
    assert list(figure.data[1].text) == ["", "∞", ""]
    assert "∞" in figure.data[1].customdata[1]
    assert figure.layout.xaxis.ticktext == ("a", "&lt;b&gt;", "·c")
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (0.5, 1.5)
    with pytest.raises(ValueError, match="as many numbers"):
        divergence_bars(raw, final[:2], ["a", "b", "c"])


# the two columns


def test_what_is_said_of_the_parting_is_what_both_settings_make_of_the_same_logits():
    pair = written()
    at = pair.comparison.divergence_index
    said = compare_views.parting(pair, "en")
    left, right = pair.documents
    assert f"position {at}" in said
    assert left.ids[:at] == right.ids[:at]
    for document, params in zip(pair.documents, pair.params, strict=True):
        p = (document.logits(at - 1) / params.temperature).softmax(0)[document.ids[at]].item()
        assert f"{100 * p:.0f}" in said.replace("\u00a0", " ") or f"{100 * p:.1f}" in said
    assert left.draw(at) == right.draw(at)
    assert f"the same number, {left.draw(at):.3f}" in said


def test_one_text_twice_has_no_parting_and_two_seeds_no_divergence():
    assert "the same" in compare_views.parting(written(COLD, COLD), "en")
    pair = written(SamplingParams(1.0, seed=1), SamplingParams(1.0, seed=2))
    assert "only the draws differ" in json.loads(compare_views.divergence(pair, "en"))["text"]


def test_at_first_the_last_common_position_is_selected_then_the_one_that_was_clicked_in_both():
    pair = written()
    assert pair.at(0) == pair.at(1) == pair.position == pair.comparison.divergence_index - 1
    assert pair.select(3, side=1)
    assert (pair.at(0), pair.at(1)) == (3, 3)
    for wrong in (-1, 10_000, True, "3", None, 2.0):
        assert not pair.select(wrong)
    assert (pair.at(0), pair.at(1)) == (3, 3)


def test_bars_after_the_parting_say_that_the_histories_differ():
    pair = written()
    apart = pair.comparison.divergence_index
    pair.select(apart - 1)
    assert json.loads(compare_views.bars(pair, 0, "en"))["note"] == ""
    pair.select(apart)
    assert "different histories" in json.loads(compare_views.bars(pair, 1, "en"))["note"]


def test_two_vocabularies_are_shown_and_not_compared():
    stories, other = get_model(), with_another_vocabulary()
    pair = Pair((stories, other), "1 2 3", (COLD, HOT))
    pair.read()
    for _ in pair.steps(3):
        pass
    pair.read()
    assert "different vocabularies" in compare_views.parting(pair, "en")
    assert compare_views.divergence(pair, "en") == ""
    assert pair.select(1, side=1)
    assert pair.positions == [None, 1]
    assert [json.loads(compare_views.bars(pair, side, "en"))["text"] != "" for side in (0, 1)] == [True, True]


# the handlers, on names in place of components


@pytest.fixture
def sides(monkeypatch):
    monkeypatch.setattr(writing, "PACE", 1e9)
    monkeypatch.setattr(writing, "UPDATE_SECONDS", 0)
    names = ("model", "temperature", "top_k", "top_p", "seed", "status", "strip", "bars")
    columns = tuple(SimpleNamespace(**{name: f"{side} {name}" for name in names}) for side in ("left", "right"))
    own = ("memory", "prompt", "length", "generate", "stop", "notice", "parting", "divergence")
    frame = SimpleNamespace(model="model", language="language")
    return SimpleNamespace(frame=frame, columns=columns, **{name: name for name in own})


def values_of(ui, **changed):
    values = {"memory": Memory(), "prompt": PROMPT, "length": 5, "model": "stories", "language": "en"}
    return values | writing.preset(ui, "temperatures", values) | changed


def test_both_strips_grow_in_step_and_only_by_new_lines(sides):
    values = values_of(sides)
    shown = [update for update in writing.stream(sides, values) if "left strip" in update]
    for side in ("left", "right"):
        strips = [update[f"{side} strip"]["value"] for update in shown]
        assert len(strips) == 1 + 5
        assert all(after.startswith(before) for before, after in itertools.pairwise(strips))
        assert all(strip.count("\n") - strips[0].count("\n") == n for n, strip in enumerate(strips))
    update = writing.finish(sides, values)
    assert "length reached" in update["left status"]
    assert update["left strip"]["parted"] == str(values["memory"].pair.comparison.divergence_index)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"prompt": "word " * 300}, "Left: the prompt has"),
        ({"prompt": None, "right seed": "-1"}, "seed must be a whole number"),
        ({"left temperature": math.nan}, "temperature must be"),
        ({"right model": "no such model"}, "there is no model"),
        ({"length": "many"}, "must be a whole number"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_the_last_result_stays(sides, changed, says):
    values = values_of(sides, **changed)
    before = values["memory"].pair = object()
    *_, last = writing.stream(sides, values)
    assert says in last["notice"]
    assert "\n" not in last["notice"]
    assert values["memory"].pair is before


def test_stopping_ends_both_columns_and_a_new_run_ends_the_one_before(sides):
    values = values_of(sides, length=100)
    run = writing.stream(sides, values)
    for _ in range(8):
        next(run)
    first = values["memory"].pair
    writing.stop(sides, values)
    assert len(list(run)) <= 1
    assert "stopped" in writing.finish(sides, values)["right status"]
    old = writing.stream(sides, values)
    for _ in range(5):
        next(old)
    superseded = values["memory"].pair
    *_, _last = writing.stream(sides, values | {"length": 3})
    list(old)
    assert len({id(first), id(superseded), id(values["memory"].pair)}) == 3
    assert superseded.ended
    assert len(superseded.documents[0].ids) < 40


def test_presets_are_models_and_settings_that_exist(sides):
    for name in writing.PRESETS:
        update = writing.preset(sides, name, {"model": "stories"})
        for side in ("left", "right"):
            assert update[f"{side} model"] in list_models()
            for setting in ("temperature", "top_k", "top_p"):
                assert LIMITS[setting].low <= update[f"{side} {setting}"] <= LIMITS[setting].high
        assert [update[f"left {part}"] for part in vars(sides.columns[0]) if f"left {part}" in update] != [
            update[f"right {part}"] for part in vars(sides.columns[0]) if f"right {part}" in update
        ]


# beam search


@pytest.fixture(scope="module")
def search():
    made = BeamSearch(Generation(get_model(), PROMPT), 3, 5)
    made.lines = [beam_views.step_lines(made, step) for step in made.steps()]
    return made


def test_the_lines_of_the_tree_add_up(search):
    rows = [json.loads(line) for step in search.lines for line in step.splitlines()]
    nodes = [row for row in rows if isinstance(row, list)]
    assert len(nodes) == len(search.candidates)
    for number, (parent, _, depth, log_p, total, score, fate) in enumerate(nodes):
        assert -1 <= parent < number
        before, above = (0.0, 0) if parent < 0 else (nodes[parent][4], nodes[parent][2])
        assert total == pytest.approx(before + log_p, abs=1e-4)
        assert score == pytest.approx(total / depth, rel=1e-5)
        assert depth == above + 1
        assert fate in tree_words("en")
    ends = [row for row in rows if isinstance(row, dict)]
    assert [end["done"] for end in ends] == [False] * 4 + [True]
    assert ends[-1]["best"] == search.best.candidate
    whole = beam_views.whole(search).splitlines()
    assert whole[1:-1] == [line for step in search.lines for line in step.splitlines()[:-1]]


def test_the_best_text_is_said_and_leads_the_table(search):
    text = get_model().tokenizer.decode(list(search.best.ids))
    assert text.strip() in beam_views.says(search, "en").replace("·", " ")
    _head, first, *rest = json.loads(beam_views.finished(search, "en"))
    scores = [float(row[3].replace("−", "-")) for row in (first, *rest)]
    assert text.strip() in first[0]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == search.width


def test_every_word_that_the_tree_asks_for_is_there_in_both_languages():
    asked = set(re.findall(r'label\("(\w+)"\)', tree._SCRIPT)) | {"best", "kept", "pruned", "finished"}
    for language in ("en", "zh"):
        assert asked <= set(tree_words(language))


@pytest.fixture
def panel(monkeypatch):
    monkeypatch.setattr(searching, "STEP_SECONDS", 0)
    names = ("memory", "prompt", "width", "penalty", "length", "search", "stop", "notice", "status", "tree", "says")
    frame = SimpleNamespace(model="model", language="language")
    return SimpleNamespace(frame=frame, **{name: name for name in (*names, "table", "chosen", "adopt")})


def asked(**changed):
    values = {"memory": Memory(), "prompt": PROMPT, "width": 2, "penalty": 1.0, "length": 4}
    return values | {"model": "stories", "language": "en"} | changed


def test_the_tree_grows_and_a_click_chooses_another_way_unless_there_is_none(panel):
    values = asked()
    first, *later = (update["tree"] for update in searching.search(panel, values) if "tree" in update)
    trees = [first["value"], *later]
    assert all(after.startswith(before) for before, after in itertools.pairwise(trees))
    assert len(trees) == 1 + 4
    memory = values["memory"]
    assert beam_views.picked(memory) == memory.search.best.candidate
    assert "step 1" in searching.choose(panel, values, {"candidate": 3})["chosen"]
    for wrong in (-1, 10**6, True, "3", None):
        searching.choose(panel, values, {"candidate": wrong})
        assert beam_views.picked(memory) == 3


def test_a_search_that_is_stopped_keeps_what_it_has(panel):
    values = asked(length=30)
    run = searching.search(panel, values)
    for _ in range(4):
        next(run)
    searching.stop(panel, values)
    assert list(run) == []
    update = searching.finish(panel, values)
    assert "No text has ended yet" in update["says"]
    assert "stopped" in update["status"]
    assert update["adopt"]["interactive"]
    assert update["tree"] == beam_views.whole(values["memory"].search)


@pytest.mark.parametrize(
    ("changed", "says"),
    [({"prompt": "word " * 300}, "the prompt has"), ({"width": 9}, "between 1 and 8"), ({"width": 2.5}, "whole number"),
     ({"penalty": math.nan}, "length_penalty"), ({"length": 0}, "max_new_tokens"), ({"model": "none"}, "no model")],
)  # fmt: skip
def test_a_search_that_cannot_be_is_one_sentence(panel, changed, says):
    values = asked(**changed)
    *_, last = searching.search(panel, values)
    assert says in last["notice"]
    assert values["memory"].search is None
