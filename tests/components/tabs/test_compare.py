"""The Compare tab without a browser: what the two columns and the beam search show, and what is refused."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import torch

from components.errors import localize_error
from components.state.session import Session
from components.state.settings import LIMITS
from components.tabs.compare.components import COLUMN_SETTINGS, PRESETS, BeamState, CompareState
from components.tabs.compare.figures import divergence_bars
from components.tabs.compare.handlers import beam_search, columns
from components.tabs.compare.pair import Pair
from components.tabs.compare.views import VIEWS
from components.tabs.compare.views import beam_search as beam_views
from components.tabs.compare.views import columns as column_views
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
    said = column_views.divergence_sentence(pair, "en")
    left, right = pair.documents
    assert f"position {at}" in said
    assert left.ids[:at] == right.ids[:at]
    for document, params in zip(pair.documents, pair.params, strict=True):
        p = (document.logits(at - 1) / params.temperature).softmax(0)[document.ids[at]].item()
        assert f"{100 * p:.0f}" in said.replace("\u00a0", " ") or f"{100 * p:.1f}" in said
    assert left.draw(at) == right.draw(at)
    assert f"the same number, {left.draw(at):.3f}" in said


def test_one_text_twice_has_no_parting_and_two_seeds_no_divergence():
    assert "the same" in column_views.divergence_sentence(written(COLD, COLD), "en")
    pair = written(SamplingParams(1.0, seed=1), SamplingParams(1.0, seed=2))
    assert "only the draws differ" in column_views.divergence_chart(pair, "en")["text"]


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
    assert column_views.bars_chart(pair, 0, "en")["note"] == ""
    pair.select(apart)
    assert "different histories" in column_views.bars_chart(pair, 1, "en")["note"]


def test_two_vocabularies_are_shown_and_not_compared():
    stories, other = get_model(), with_another_vocabulary()
    pair = Pair((stories, other), "1 2 3", (COLD, HOT))
    pair.read()
    for _ in pair.steps(3):
        pass
    pair.read()
    assert "different vocabularies" in column_views.divergence_sentence(pair, "en")
    assert column_views.divergence_chart(pair, "en")["figure"] is None
    assert pair.select(1, side=1)
    assert pair.positions == [None, 1]
    assert [column_views.bars_chart(pair, side, "en")["text"] != "" for side in (0, 1)] == [True, True]


# the handlers


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setattr(columns, "TOKENS_PER_SECOND", 1e9)
    monkeypatch.setattr(columns, "UPDATE_SECONDS", 0)
    monkeypatch.setattr(beam_search, "STEP_SECONDS", 0)
    opened = Session(Generation(get_model(), PROMPT), PROMPT)
    opened.tab = "compare"
    columns.open_tab(opened)
    opened.change(CompareState, length=5)
    opened.change(BeamState, width=2, length=4)
    return opened


def drawn(session):
    snapshot = session.snapshot()
    return {view.name: view.draw(snapshot) for view in VIEWS}


def test_both_strips_grow_in_step_and_only_at_their_end(session):
    shown = [drawn(session) for _ in columns.generate(session)]
    columns.finish(session)
    shown = [each for each in [*shown, drawn(session)] if each["compare-left-strip"]["lines"]]
    for side in ("left", "right"):
        strips = [each[f"compare-{side}-strip"]["lines"] for each in shown]
        assert all(after[: len(before)] == before for before, after in itertools.pairwise(strips))
        assert len(strips[-1]) - len(strips[0]) == 5
    last, pair = shown[-1], session.state(CompareState).pair
    assert "length reached" in last["compare-left-status"]["text"]
    assert last["compare-left-strip"]["parted"] == pair.comparison.divergence_index


@pytest.mark.parametrize(
    ("prompt", "seed", "model", "says"),
    [
        ("word " * 300, "1", "stories", "Left: The prompt has"),
        ("", "-1", "stories", "seed must be a whole number"),
        ("The dog", "1", "no such model", "there is no model"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_the_last_result_stays(session, prompt, seed, model, says):
    before = Pair((get_model(), get_model()), PROMPT, (COLD, HOT))
    session.change(CompareState, pair=before)
    session.model = model
    for _ in columns.generate_typed(session, prompt, "1", seed):
        pass
    notice = drawn(session)["compare-notice"]["text"]
    assert says in notice
    assert "\n" not in notice
    assert session.state(CompareState).pair is before
    assert not session.state(CompareState).generating


@pytest.mark.parametrize("value", ["many", None, math.nan, [1]])
def test_a_setting_that_is_no_number_is_refused(session, value):
    before = session.state(CompareState).columns
    for name in COLUMN_SETTINGS:
        with pytest.raises(ValueError, match="must be"):
            columns.set_value(0, name, session, value)
    columns.set_value(1, "model", session, value)
    assert session.state(CompareState).columns == before


def test_stopping_ends_both_columns_and_a_new_run_ends_the_one_before(session):
    session.change(CompareState, length=100)
    run = columns.generate(session)
    for _ in range(8):
        next(run)
    columns.stop(session)
    assert len(list(run)) <= 1
    columns.finish(session)
    assert "stopped" in drawn(session)["compare-right-status"]["text"]
    old = columns.generate(session)
    for _ in range(5):
        next(old)
    superseded = session.state(CompareState).pair
    session.change(CompareState, length=3)
    list(columns.generate(session))
    list(old)
    assert superseded.ended
    assert session.state(CompareState).pair is not superseded


def test_a_run_or_a_search_that_is_closed_before_its_first_step_has_ended(session):
    for run in (columns.generate(session), beam_search.search(session, PROMPT)):
        next(run)
        run.close()
    assert not session.state(CompareState).generating
    assert not session.state(BeamState).searching


def test_presets_are_models_and_settings_that_exist_and_differ():
    for left, right in PRESETS.values():
        assert left != right
        for column in (left, right):
            assert column.model in ("", *list_models())
            assert all(LIMITS[name].low <= getattr(column, name) <= LIMITS[name].high for name in COLUMN_SETTINGS)


def test_the_playground_s_prompt_is_taken_unless_another_was_typed(session):
    session.typed = "The dog"
    columns.open_tab(session)
    assert session.state(CompareState).prompt == "The dog"
    columns.type_prompt(session, "The cat")
    columns.open_tab(session)
    assert session.state(CompareState).prompt == "The cat"


# beam search


@pytest.fixture(scope="module")
def search():
    made = BeamSearch(Generation(get_model(), PROMPT), 3, 5)
    for _ in made.steps():
        pass
    return made


def test_the_lines_of_the_tree_add_up(search):
    rows = [json.loads(line) for line in beam_views.tree_lines(search)]
    nodes = [row for row in rows if isinstance(row, list)]
    assert len(nodes) == len(search.candidates)
    for number, (parent, _, depth, log_p, total, score, outcome) in enumerate(nodes):
        assert -1 <= parent < number
        before, above = (0.0, 0) if parent < 0 else (nodes[parent][4], nodes[parent][2])
        assert total == pytest.approx(before + log_p, abs=1e-4)
        assert score == pytest.approx(total / depth, rel=1e-5)
        assert depth == above + 1
        assert outcome in beam_views.tree_labels("en")
    assert rows[-1] == {"best": search.best.candidate, "done": True}


def test_the_best_text_is_said_and_leads_the_table(search):
    text = get_model().tokenizer.decode(list(search.best.ids))
    assert text.strip() in beam_views.best_sentence(search, "en").replace("·", " ")
    assert "最佳的文本" in beam_views.best_sentence(search, "zh")
    _head, first, *rest = beam_views.finished_rows(search, "en")
    scores = [float(row[3].replace("−", "-")) for row in (first, *rest)]
    assert text.strip() in first[0]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == search.width


def test_the_tree_grows_and_a_click_chooses_another_way_unless_there_is_none(session):
    trees = [drawn(session)["beams-tree"]["lines"] for _ in beam_search.search(session, PROMPT)]
    candidates = [[line for line in tree if line.startswith("[")] for tree in trees]
    assert all(after[: len(before)] == before for before, after in itertools.pairwise(candidates))
    state = session.state(BeamState)
    assert beam_views.picked(state) == state.search.best.candidate
    beam_search.choose(session, {"candidate": 3})
    assert "step 1" in drawn(session)["beams-chosen"]["text"]
    for wrong in (-1, 10**6, True, "3", None):
        beam_search.choose(session, {"candidate": wrong})
        assert beam_views.picked(session.state(BeamState)) == 3


def test_a_search_that_is_stopped_keeps_what_it_has(session):
    session.change(BeamState, length=30)
    run = beam_search.search(session, PROMPT)
    for _ in range(4):
        next(run)
    beam_search.stop(session)
    list(run)
    shown = drawn(session)
    assert "No text has ended yet" in shown["beams-says"]["text"]
    assert "stopped" in shown["beams-status"]["text"]
    assert not session.state(BeamState).searching


@pytest.mark.parametrize(
    ("prompt", "model", "says"), [("word " * 300, "stories", "the prompt has"), (PROMPT, "none", "no model")]
)
def test_a_search_that_cannot_be_is_one_sentence(session, prompt, model, says):
    session.model = model
    for _ in beam_search.search(session, prompt):
        pass
    assert says in drawn(session)["beams-notice"]["text"]
    assert session.state(BeamState).search is None


@pytest.mark.parametrize(("name", "value"), [("width", 9), ("width", 2.5), ("penalty", math.nan), ("length", 0)])
def test_a_setting_of_the_search_out_of_its_range_is_refused(session, name, value):
    with pytest.raises(ValueError, match=r"between|number") as refused:
        beam_search.set_value(name, session, value)
    assert localize_error(refused.value, "zh") != localize_error(refused.value, "en")


def test_the_chosen_way_becomes_the_text_as_tokens_chosen_by_hand(session):
    for _ in beam_search.search(session, PROMPT):
        pass
    ids = session.state(BeamState).search.ids(beam_views.picked(session.state(BeamState)))
    beam_search.adopt(session)
    document = session.document
    assert document.ids[-len(ids) :] == list(ids)
    assert document.origin(len(document.ids) - 1).kind == "chosen"
    assert session.tab == "playground"
    assert session.can_undo
