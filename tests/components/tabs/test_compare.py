"""The Compare tab without a browser: the contents of the two columns, and rejected inputs."""

from __future__ import annotations

import contextlib
import itertools
import math

import pytest
import torch

from components.i18n import speaking
from components.state.jobs import stop
from components.state.session import Session
from components.state.settings import LIMITS
from components.tabs.compare import columns
from components.tabs.compare.beams import Beams
from components.tabs.compare.columns import COLUMN_SETTINGS, PRESETS, Compare, prompts
from components.tabs.compare.pair import Pair
from components.tabs.compare.tab import open_part, open_tab, tab
from gpt import GPT, GPTConfig, LoadedModel, SamplingParams, get_model, list_models
from gpt.models.checkpoints.vocabularies import PlainIds
from tests.components.drawing import Drawn
from tests.components.tabs.compare_session import PROMPT, drawn, new_session

COLD, HOT = SamplingParams(0.3, seed=1), SamplingParams(1.5, seed=1)


def written(left=COLD, right=HOT, *, models=("stories", "stories"), length=6, prompt=PROMPT, other=None):
    pair = Pair(tuple(get_model(name) for name in models), (prompt, other or prompt), (left, right))
    pair.read()
    for _ in pair.steps(length):
        pass
    pair.read()
    pair.comparison.measure()
    return pair


def snapshot_of(pair):
    session = Session(None)
    session.change(Compare, pair=pair)
    return session.snapshot()


def with_another_vocabulary():
    config = GPTConfig(vocab_size=12, block_size=24, n_layer=1, n_head=1, n_embd=8)
    return LoadedModel("other", GPT(config).eval(), PlainIds(12), torch.device("cpu"), "fp32")


# The two columns


def test_the_sentence_on_the_first_difference_applies_both_settings_to_the_same_logits():
    pair = written()
    at = pair.comparison.divergence_index
    with speaking("en", exact=True):
        said = columns.divergence_sentence(pair)
    plain = columns.divergence_sentence(pair)
    left, right = pair.documents
    assert f"(position {at - 1}), the left continues" in said
    assert not {"position", "draw"} & {*plain.split()}
    assert left.ids[:at] == right.ids[:at]
    for document, params in zip(pair.documents, pair.params, strict=True):
        p = (document.logits(at - 1) / params.temperature).softmax(0)[document.ids[at]].item()
        assert f"{100 * p:.0f}" in said.replace("\u00a0", " ") or f"{100 * p:.1f}" in said
    assert left.draw(at) == right.draw(at)
    assert f"Both sides drew the same number, {left.draw(at):.3f}" in said


def test_one_text_twice_has_no_parting_and_two_seeds_no_divergence():
    assert "identical" in columns.divergence_sentence(written(COLD, COLD))
    pair = written(SamplingParams(1.0, seed=1), SamplingParams(1.0, seed=2))
    assert "only the draws differ" in columns.divergence(snapshot_of(pair))[1]


def test_a_run_takes_a_slot_of_each_model(monkeypatch):
    session = new_session(monkeypatch)
    queues = [get_model(name).engine.admission for name in ("stories", "untrained")]
    columns.set_value(1, "model", session, "untrained")
    for queue in queues:
        with contextlib.ExitStack() as others:
            for _ in range(queue.limit):
                others.enter_context(queue.enter())
            run = columns.generate(session)
            while session.progress is None or session.progress.key != "status.waiting":
                next(run)
            assert session.state(Compare).pair.documents[0].n_read == 0
        list(run)
        assert session.state(Compare).pair.finish_reasons == ["max_new_tokens", "max_new_tokens"]
    assert [queue.n_admitted for queue in queues] == [0, 0]


def test_a_run_with_nothing_changed_takes_other_seeds_and_keeps_equal_ones_equal(monkeypatch):
    session = new_session(monkeypatch)
    seeds, texts = [], []
    for _ in range(2):
        list(columns.generate(session))
        state = session.state(Compare)
        seeds.append([column.seed for column in state.columns])
        texts.append(state.pair.documents[1].ids)
    session.change(Compare, columns=PRESETS["seeds"])
    for _ in range(2):
        list(columns.generate(session))
    assert seeds == [["1", "1"], ["2", "2"]]
    assert texts[0] != texts[1]
    assert [column.seed for column in session.state(Compare).columns] == ["3", "4"]


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
    assert columns.bars(0, snapshot_of(pair))[2] == ""
    pair.select(apart)
    assert "are based on different texts" in columns.bars(1, snapshot_of(pair))[2]


def test_both_sides_bars_have_one_scale_even_if_one_side_is_unsure():
    unsure = written(HOT, models=("stories", "untrained"))
    ends = [columns.bars(side, snapshot_of(unsure))[0]["layout"]["xaxis"]["range"] for side in (0, 1)]
    assert ends[0] == ends[1]


def test_two_vocabularies_are_shown_and_not_compared():
    stories, other = get_model(), with_another_vocabulary()
    pair = Pair((stories, other), ("1 2 3", "1 2 3"), (COLD, HOT))
    pair.read()
    for _ in pair.steps(3):
        pass
    pair.read()
    assert "different vocabularies" in columns.divergence_sentence(pair)
    assert "probabilities cannot be compared" in columns.divergence(snapshot_of(pair))[1]
    assert pair.select(1, side=1)
    assert pair.positions == [None, 1]
    assert [columns.bars(side, snapshot_of(pair))[1] != "" for side in (0, 1)] == [True, True]


def test_two_prompts_are_not_paired_and_their_predictions_are_compared_at_the_selected_positions():
    other = "The dog"
    pair = written(COLD, COLD, other=other)
    assert (pair.comparison.divergence_index, pair.comparison.divergences) == (None, [])
    ends = [len(get_model().tokenizer.encode(prompt)) - 1 for prompt in (PROMPT, other)]
    assert [pair.at(0), pair.at(1)] == ends
    assert pair.select(0, side=0)
    assert [pair.at(0), pair.at(1)] == [0, ends[1]]
    p, q = (document.logits(at).softmax(0) for document, at in zip(pair.documents, (0, ends[1]), strict=True))
    apart = torch.nn.functional.kl_div(q.log(), p, reduction="sum").item() / math.log(2)
    said = columns.divergence(snapshot_of(pair))[1]
    assert f"After “Once” on the left and “dog” on the right, the predictions differ by {apart:.2f} bits" in said
    assert pair.documents[1].ids == written(COLD, COLD, prompt=other).documents[0].ids


# The handlers


@pytest.fixture
def session(monkeypatch):
    return new_session(monkeypatch)


def test_both_strips_grow_in_step_and_only_at_their_end(session):
    shown = [drawn(session) for _ in columns.generate(session)]
    shown = [each for each in [*shown, drawn(session)] if each["compare-left-strip"]["lines"]]
    for side in ("left", "right"):
        strips = [each[f"compare-{side}-strip"]["lines"] for each in shown]
        assert all(after[: len(before)] == before for before, after in itertools.pairwise(strips))
        assert len(strips[-1]) - len(strips[0]) == 5
    last, pair = shown[-1], session.state(Compare).pair
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
    before = Pair((get_model(), get_model()), (PROMPT, PROMPT), (COLD, HOT))
    session.change(Compare, pair=before)
    session.model = model
    columns.type_prompt(session, prompt)
    columns.set_value(1, "seed", session, seed)
    list(columns.generate(session))
    notice = drawn(session)["compare-notice"]["text"]
    assert says in notice
    assert "\n" not in notice
    assert session.state(Compare).pair is before
    assert session.state(Compare).job is None


@pytest.mark.parametrize("value", ["many", None, math.nan, [1]])
def test_a_setting_that_is_no_number_is_refused(session, value):
    before = session.state(Compare).columns
    for name in COLUMN_SETTINGS:
        with pytest.raises(ValueError, match="must be"):
            columns.set_value(0, name, session, value)
    columns.set_value(1, "model", session, value)
    assert session.state(Compare).columns == before


def test_stopping_ends_both_columns_and_a_new_run_ends_the_one_before(session):
    session.change(Compare, length=100)
    run = columns.generate(session)
    for _ in range(8):
        next(run)
    stop(Compare, session)
    assert list(run) == []
    pair = session.state(Compare).pair
    assert [document.n_read for document in pair.documents] == [len(document.ids) for document in pair.documents]
    assert "stopped" in drawn(session)["compare-right-status"]["text"]
    old = columns.generate(session)
    for _ in range(5):
        next(old)
    superseded = session.state(Compare).pair
    session.change(Compare, length=3)
    list(columns.generate(session))
    list(old)
    assert superseded.finish_reasons == ["stopped", "stopped"]
    assert session.state(Compare).pair is not superseded


def test_a_run_that_is_closed_before_its_first_step_has_ended(session):
    run = columns.generate(session)
    next(run)
    run.close()
    assert session.state(Compare).job is None


def test_the_prompt_is_the_playground_s_until_it_is_typed_and_the_right_one_is_the_left_one_until_then(
    session,
):
    for text in (PROMPT, "The cat"):
        session.set_typed(text, is_current=False)
        assert prompts(session) == prompts(session.snapshot()) == (text, text)
    columns.type_right_prompt(session, "The dog")
    list(columns.generate(session))
    assert session.state(Compare).pair.prompts == ("The cat", "The dog")
    columns.type_prompt(session, "Lily")
    session.set_typed("Tom", is_current=False)
    assert prompts(session) == ("Lily", "The dog")
    columns.type_right_prompt(session, "word " * 300)
    list(columns.generate(session))
    assert "Right: The prompt has" in drawn(session)["compare-notice"]["text"]
    columns.type_right_prompt(session, "Lily")
    columns.type_prompt(session, "Tom")
    assert prompts(session) == ("Tom", "Tom")
    columns.type_right_prompt(session, "")
    assert prompts(session) == ("Tom", "")
    list(columns.run_preset("seeds", session))
    assert session.state(Compare).pair.prompts == ("Tom", "Tom")


def test_presets_are_models_and_settings_that_exist_and_differ():
    for left, right in PRESETS.values():
        assert left != right
        for column in (left, right):
            assert column.model in ("", *list_models())
            assert all(LIMITS[name].low <= getattr(column, name) <= LIMITS[name].high for name in COLUMN_SETTINGS)


def test_each_part_runs_an_example_when_it_is_first_opened_and_closed_parts_are_not_drawn(session):
    runs = []
    for part in ("beams", "beams", "other"):
        list(open_tab(session))
        list(open_part(session, part))
        runs.append((session.state(Compare).pair, session.state(Beams).search))
    assert None not in runs[0]
    assert runs == runs[:1] * 3
    assert not [name for name in Drawn(session, tab).update() if name.startswith("compare-")]
