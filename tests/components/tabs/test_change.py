"""The Change tab: the effect of edits on a text, in numbers, words and a program; handlers and views."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from components.labels import token_text, visible
from components.share.address import page_values
from components.share.link import decode, encode
from components.share.opening import open_link
from components.state.session import Session
from components.tabs.change.components import ChangeState, is_stale
from components.tabs.change.effect import head_costs, measure, read_document, read_prompt
from components.tabs.change.experiments import EXPERIMENTS, describe_edits, summary
from components.tabs.change.figures import divergence_bars, recovery_heatmap
from components.tabs.change.handlers import editing, generation, patching
from components.tabs.change.handlers.measurement import ANALYSIS, stop_task
from components.tabs.change.program import program
from components.tabs.change.tab import NAME
from components.tabs.change.views import VIEWS
from components.tabs.change.views.patching import answer_picker
from components.tabs.change.views.texts import code
from components.widgets.switches import switches_data
from gpt import Edits, Generation, SamplingParams
from gpt.analysis.patching import patch_from
from gpt.analysis.predictions import kl_divergence
from tests.gpt.fake_models import tiny_model

PARAMS = SamplingParams(temperature=2.0, seed=3)
DRAWN = {view.name: view for view in VIEWS}


@pytest.fixture(scope="module")
def document() -> Generation:
    made = Generation(tiny_model(), "the cat sat")
    list(made.steps(PARAMS, 6))
    made.read()
    return made


@pytest.fixture
def session(document: Generation) -> Session:
    """A session whose text is measured."""
    return analysed(Session(document.copy()))


def analysed(session: Session) -> Session:
    """What the page asks for while the tab is open."""
    done = None
    while (wanted := ANALYSIS.wanted(session.snapshot())) is not None:
        assert wanted != done  # else the page would ask for ever
        done = wanted
        finish(ANALYSIS.run(session))
    return session


def finish(steps: Iterator[None] | None) -> None:
    for _ in steps or ():
        pass


def drawn(session: Session, name: str) -> dict[str, Any]:
    return DRAWN[f"change-{name}"].draw(session.snapshot())


def said(session: Session, name: str) -> str:
    return drawn(session, name)["text"]


def other_model() -> Generation:
    made = Generation(tiny_model(n_layer=1, seed=9), "the dog")
    made.read()
    return made


def test_the_effect_is_the_divergence_of_both_models_reading_the_same_text(document):
    edits = Edits({(0, 1): 0.0}, mlp_scale={1: 0.5}, drop_positions=True)
    text = read_document(document, "source")
    effect = measure(text, edits)
    edited = Generation(document.loaded, document.ids[: document.n_read], edits=edits)
    edited.read()
    for position in range(document.n_read):
        p, q = (d.logits(position).softmax(0) for d in (document, edited))
        for ours, theirs in zip(effect.probabilities(position), (p, q), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
        assert effect.bits[position] == pytest.approx(kl_divergence(p.log(), q.log()).item(), abs=1e-4)
    assert effect.before == pytest.approx(document.statistics().mean_surprisal, abs=1e-5)
    assert effect.after == pytest.approx(edited.statistics().mean_surprisal, abs=1e-5)
    nothing = measure(text, Edits())
    assert nothing.bits.max() == 0
    assert nothing.after == nothing.before


def test_the_bars_are_the_probabilities_before_and_after_with_the_token_that_follows_marked(session):
    session.select(position=3)
    session.edits = Edits(attn_scale={0: 0.0})
    shown, effect = drawn(analysed(session), "bars"), session.state(ChangeState).effect
    before, after = effect.probabilities(3)
    follower = session.document.ids[4]
    _, old, new, name, _ = shown["bars"][shown["chosen"]]
    assert (old, new) == (
        pytest.approx(before[follower].item(), rel=1e-3),
        pytest.approx(after[follower].item(), rel=1e-3),
    )
    assert " → " in name
    best = {int(p.argmax()) for p in (before, after)}
    assert {shown["bars"][0][0]} <= {visible(token_text(session.document.tokenizer, i)) for i in best}


def test_without_edits_there_are_no_bars_of_the_divergence(session):
    assert drawn(session, "divergence")["figure"] is None
    editing.try_experiment("feed_0", session)
    figure = drawn(analysed(session), "divergence")["figure"]
    assert len(figure["data"][0]["x"]) > 0


def test_a_read_text_stays_what_it_was_when_the_document_goes_on(document):
    own = document.copy()
    text = read_document(own, "source")
    before = text.states.clone()
    own.go_back(2)
    own.append(7, 8, 9)
    own.read()
    assert torch.equal(text.states, before)


def test_a_document_of_an_edited_model_is_read_again_by_the_unedited_one(document):
    edited = Generation(document.loaded, document.ids, edits=Edits(attn_scale={0: 0.0}))
    edited.read()
    states = read_document(edited, "source").states
    torch.testing.assert_close(states, read_document(document, "source").states, atol=1e-5, rtol=1e-4)


def test_a_prompt_is_read_as_a_document_reads_it(document):
    ids = document.ids[: document.n_prompt]
    fresh = Generation(document.loaded, ids)
    fresh.read()
    text = read_prompt(document.loaded, ids, "source")
    torch.testing.assert_close(text.states, fresh.states(), atol=1e-5, rtol=1e-4)
    assert text.n_prompt == len(ids)


def test_the_cost_of_a_head_is_what_switching_it_off_alone_changes(document):
    text, reports = read_document(document, "source"), []
    costs = head_costs(text, lambda *counts: reports.append(counts))
    assert reports[-1] == (costs.bits.size, costs.bits.size)
    for layer, head in np.ndindex(costs.bits.shape):
        alone = measure(text, Edits({(layer, head): 0.0})).bits.mean()
        assert costs.bits[layer, head] == pytest.approx(alone, rel=1e-4, abs=1e-6)


def test_the_costliest_head_is_switched_off_and_the_costs_belong_to_one_text(session):
    finish(editing.switch_off_costliest(session))
    costs = session.state(ChangeState).costs
    head = tuple(int(i) for i in np.unravel_index(costs.bits.argmax(), costs.bits.shape))
    assert session.edits == Edits({head: 0.0})
    assert len(drawn(session, "switches")["costs"]) == costs.bits.size
    session.document.append(7)
    session.document.read()
    assert drawn(analysed(session), "switches")["costs"] is None


def test_a_stopped_measurement_changes_no_edit(session, monkeypatch):
    def stopped(text, progress):
        stop_task(session, "costs_task")
        while True:
            progress(1, 9)

    monkeypatch.setattr(editing, "head_costs", stopped)
    finish(editing.switch_off_costliest(session))
    state = session.state(ChangeState)
    assert (session.edits, state.costs, state.costs_task) == (Edits(), None, None)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_different_edits_are_described_differently_and_none_is_silent(document, language):
    config = document.loaded.model.config
    whole = Edits({(0, head): 0.0 for head in range(config.n_head)})
    edits = [*(make(config) for make in EXPERIMENTS.values()), whole, Edits(mlp_scale={1: 0.5}), Edits({(1, 0): 2.0})]
    described = [summary(each, config, language) for each in edits]
    assert all(described)
    assert len(set(described)) == len(described)
    assert summary(Edits(), config, language) == ""
    assert summary(Edits(activation=config.activation), config, language) == ""


def test_what_belongs_together_is_described_together_and_many_edits_are_counted(document):
    config = document.loaded.model.config
    every = range(config.n_layer)
    assert describe_edits(Edits({}, {1: 0.0}, {1: 0.0}), config, "en") == ["layer 1 off"]
    assert describe_edits(Edits({}, dict.fromkeys(every, 0.0)), config, "en") == ["attention in all layers off"]
    heads = {(0, head): 0.5 for head in range(config.n_head)}
    assert describe_edits(Edits(heads), config, "en") == ["all heads of layer 0 × 0.5"]
    many, big = Edits({(layer, 0): 0.1 * layer for layer in range(20)}), replace(config, n_layer=20)
    assert len(describe_edits(many, big, "en")) == 20
    assert summary(many, big, "en").endswith("; 14 more")


@pytest.mark.parametrize(
    "sent", [{}, {"edits": None}, {"edits": "h9.0=0"}, {"edits": "nopos"}, {"edits": ["a0=0"]}, {"edits": "a0=nan"}]
)
def test_what_the_browser_sends_is_checked(session, sent):
    before = session.edits = Edits({(0, 0): 0.5})
    editing.set_switches(session, sent)
    assert session.edits is before
    assert "could not be read" in said(session, "notice")
    assert drawn(session, "switches")["edits"] == "h0.0=0.5"


@pytest.mark.parametrize("sent", [{}, {"index": "1"}, {"index": -1}, {"index": 99}, {"x": None}, {"index": True}])
def test_only_positions_that_were_read_are_selected(session, sent):
    before = session.selection
    editing.select_token(session, sent)
    editing.select_bar(session, sent)
    assert session.selection == before


def test_switches_replace_all_factors_and_leave_the_other_edits(session):
    session.edits = Edits({(0, 0): 0.0}, activation="relu", drop_positions=True)
    editing.set_switches(session, {"edits": "a1=0.5", "n": 7})
    assert session.edits == Edits({}, {1: 0.5}, activation="relu", drop_positions=True)
    assert "layer 1 attention × 0.5" in said(session, "lead")
    assert drawn(session, "switches")["answered"] == 7  # what a later click set stays, see the widget


def test_a_selection_is_that_of_every_tab_where_the_text_is_the_playgrounds(session):
    editing.select_token(session, {"index": 2})
    assert session.selection.position == drawn(session, "original")["selected"] == 2
    finish(generation.generate_both(session))
    analysed(session)
    editing.select_bar(session, {"x": 3})
    assert (session.selection.position, drawn(session, "original")["selected"]) == (2, 3)


def test_a_new_model_keeps_the_edits_that_fit_and_names_those_it_dropped(document):
    session = analysed(Session(document.copy(), edits=Edits({(0, 0): 0.0}, {1: 0.0}, drop_positions=True)))
    assert said(session, "notice") == ""
    session.document = other_model()
    analysed(session)
    assert session.edits == Edits({(0, 0): 0.0}, drop_positions=True)
    assert "layer 1 attention off" in said(session, "notice")
    session.document = None
    assert ANALYSIS.wanted(session.snapshot()) is None
    assert drawn(session, "bars")["bars"] == []
    assert drawn(session, "switches")["n_layer"] == 0
    assert drawn(session, "original")["lines"] == []
    editing.set_switches(session, {"edits": "a0=0"})
    assert session.edits == Edits({(0, 0): 0.0}, drop_positions=True)


def test_every_view_belongs_to_the_text_that_was_measured_while_the_next_is_written(session):
    before = drawn(session, "original")["lines"]
    turn = session.lock.begin()
    session.document.append(7)
    assert ANALYSIS.wanted(session.snapshot()) is None
    assert "writing in the Playground" in said(session, "status")
    assert drawn(session, "original")["lines"] == before
    session.lock.end(turn)
    session.document.read()
    assert len(drawn(analysed(session), "original")["lines"]) == len(before) + 1


def test_edits_of_a_link_are_taken_over_and_those_made_here_go_into_one(session):
    session.edits = Edits({(1, 0): 0.0}, {9: 0.0})
    analysed(session)
    assert "layer 1 head 0 off" in said(session, "lead")
    assert "layer 9 attention off" in said(session, "notice")
    editing.set_switches(session, {"edits": "f0=0"})
    assert session.edits == Edits(mlp_scale={0: 0.0})
    assert page_values(session.snapshot())["edits"] == "f0=0"
    editing.reset(session)
    assert "edits" not in page_values(session.snapshot())


def test_both_texts_are_those_of_both_models_and_part_where_it_is_said(session):
    session.settings = replace(session.settings, seed="3", length=6, temperature=2.0, pace=0)
    session.edits = Edits(attn_scale={0: 0.0, 1: 0.0})
    steps = generation.generate_both(session)
    next(steps)
    assert session.busy
    finish(steps)
    assert not session.busy
    pair, prompt = session.state(ChangeState).written, session.document.prompt_ids
    for text, edits in ((pair.original, None), (pair.edited, session.edits)):
        alone = Generation(session.document.loaded, prompt, edits=edits)
        list(alone.steps(pair.params, 6))
        assert list(text.ids) == alone.ids
    index = pair.divergence_index
    assert f"position {index}" in said(session, "parted")
    analysed(session)
    assert [len(drawn(session, side)["lines"]) for side in ("original", "edited")] == [
        len(text.ids) for text in (pair.original, pair.edited)
    ]
    assert (drawn(session, "original")["parted"], drawn(session, "edited")["parted"]) == (index, index)
    assert drawn(session, "original")["selected"] == index - 1
    assert "Reset" in said(session, "own")
    assert said(session, "stale") == ""
    editing.drop_positions(session, True)
    assert is_stale(analysed(session).snapshot())
    assert "attention in all layers off" in said(session, "stale")  # the edits that it was written with
    editing.reset(session)
    assert session.state(ChangeState).written is None
    assert said(analysed(session), "own") == said(session, "parted") == ""


def test_both_texts_end_when_they_are_stopped_and_go_when_the_playground_has_another_text(session):
    session.settings = replace(session.settings, length=12, pace=5)
    steps = generation.generate_both(session)
    for _ in range(3):
        next(steps)
    generation.stop(session)
    finish(steps)
    assert len(session.state(ChangeState).written.original.ids) == session.document.n_prompt + 1
    assert said(analysed(session), "own")
    session.document.append(7)
    session.document.read()
    assert said(analysed(session), "own") == ""
    assert drawn(session, "edited")["lines"] == []


def test_both_texts_wait_for_one_place_and_give_it_back(session):
    admission = session.document.loaded.engine.admission
    with contextlib.ExitStack() as others:
        for _ in range(admission.limit):
            others.enter_context(admission.enter())
        steps = generation.generate_both(session)
        next(steps)
        next(steps)
        assert "ahead of you" in said(session, "status")
        assert session.state(ChangeState).written is None
    finish(steps)
    assert len(session.state(ChangeState).written.edited.ids) > session.document.n_prompt
    assert admission.n_admitted == 0


def test_a_link_with_a_patch_opens_on_its_prompt_and_shows_both_prompts(session):
    loaded = session.document.loaded
    session.change(ChangeState, clean="the cat", corrupted="the dog", patched="attn_out")
    finish(patching.sweep(session))
    patching.choose_cell(session, {"x": 4, "y": 1})
    session.tab = NAME
    patching.keep(session)
    analysed(session)
    query = encode(
        {name: value for name, value in page_values(session.snapshot()).items() if name in ("tab", "edits", "edits_on")}
    )
    assert set(decode(query)[0]) == {"tab", "edits", "edits_on"}

    opened = analysed(Session(session.document.copy()))
    finish(open_link(opened, query, [NAME], {}))
    analysed(opened)
    state = opened.state(ChangeState)
    assert (state.clean, state.corrupted) == ("the cat", "the dog")
    assert list(state.text.ids) == loaded.tokenizer.encode("the dog")
    torch.testing.assert_close(state.effect.states, session.state(ChangeState).effect.states)
    opened.document = other_model()
    assert "attention output of layer 1" in said(analysed(opened), "notice")
    assert (opened.edits.patches, opened.edits_on) == ((), ())
    assert not opened.state(ChangeState).text.own


def run_program(source: str, loaded: Any) -> tuple[dict[str, Any], str]:
    """The program with this model in place of the named one."""
    out, space = io.StringIO(), {}
    head, body = source.split("\nloaded = ", 1)
    exec(head, space)
    with contextlib.redirect_stdout(out):
        exec("loaded = given\n" + body.split("\n", 1)[1], space | (made := {"given": loaded}) | space, made)
    return made, out.getvalue()


@pytest.mark.parametrize("patched", [False, True])
def test_the_program_writes_both_texts_and_measures_the_same(session, patched):
    loaded = session.document.loaded
    edits = Edits({(0, 1): 0.0}, activation="relu")
    if patched:
        clean = loaded.tokenizer.encode("the dog")
        edits = replace(edits, patches=(patch_from(loaded.model, clean, "resid_pre", 1, 4),))
    session.edits = edits
    session.settings = replace(session.settings, seed="3", length=5, pace=0)
    finish(generation.generate_both(session))
    state = analysed(session).state(ChangeState)
    space, printed = run_program(code(session.snapshot()), loaded)
    pair = state.written
    assert [space["original"].ids, space["edited"].ids] == [list(pair.original.ids), list(pair.edited.ids)]
    assert all(space[name].text in printed for name in ("original", "edited"))
    torch.testing.assert_close(space["states"], state.effect.states, atol=1e-5, rtol=1e-4)


def test_a_prompt_that_is_not_the_tokens_of_its_text_is_a_list_in_the_program(document):
    assert "prompt = [116, 104]" in program(document.loaded, (116, 104), Edits(), PARAMS, 5)


def test_a_kept_patch_does_what_its_cell_of_the_map_says(session):
    session.change(ChangeState, clean="the cat", corrupted="the dog", patched="attn_out")
    finish(patching.sweep(session))
    sweeps = session.state(ChangeState).sweeps
    pair, sweep = sweeps.pair, sweeps.by_name["attn_out"]
    layer, position = 1, len(pair.clean) - 1
    for sent in ({"x": position, "y": 99}, {"x": "0", "y": 0}, {}):
        patching.choose_cell(session, sent)
        patching.keep(session)
        assert session.edits == Edits()
    patching.choose_cell(session, {"x": position, "y": layer})
    patching.keep(session)
    effect = analysed(session).state(ChangeState).effect
    assert effect.text.ids == session.edits_on == pair.corrupted
    assert f"attention output of layer {layer}" in said(session, "lead")
    _, edited = effect.probabilities(position)
    difference = (edited[pair.answer].log() - edited[pair.other].log()).item()
    expected = sweep.corrupted + sweep.recovered[layer, position].item() * (sweep.clean - sweep.corrupted)
    assert difference == pytest.approx(expected, abs=1e-3)


def test_pairs_that_cannot_be_compared_are_refused_with_a_sentence(session):
    def trouble(clean: str, corrupted: str, **chosen: object) -> str:
        for name, value in chosen.items():
            patching.set_control(name, session, value)
        finish(patching.measure(session, clean, corrupted))
        return said(session, "trouble")

    assert "both need the same number" in trouble("the cat", "the catalogue")
    assert drawn(session, "map")["figure"] is None
    assert "Type both" in trouble("", "the")
    assert "the same." in trouble("the cat", "the cat")
    assert trouble("the cat", "the dog") == ""
    assert "Logit difference" in said(session, "map")
    assert "must differ" in trouble("the cat", "the dog", answer=7, other=7)
    assert drawn(session, "map")["figure"] is None
    assert "is not a single token" in trouble("the cat", "the dog", answer="zebra")
    patching.set_control("patched", session, "ln_1")
    assert session.state(ChangeState).patched == "resid_pre"


def test_what_was_measured_on_a_model_is_not_shown_for_another(session):
    session.change(ChangeState, clean="the cat", corrupted="the dog")
    finish(patching.sweep(session))
    assert drawn(session, "map")["figure"] is not None
    assert answer_picker("answer", session.snapshot())["value"] == session.state(ChangeState).sweeps.pair.answer
    session.document = other_model()
    assert drawn(session, "map")["figure"] is None
    assert answer_picker("answer", session.snapshot()) == {"choices": [], "value": None}


def test_a_map_has_zero_in_the_middle_of_its_colours_and_both_tokens_where_they_differ():
    figure = recovery_heatmap(np.array([[0.2, 1.4], [-0.1, 0]]), ["<b>", "x"], ["y", "x"], cell=(1, 0))
    heat = figure.data[0]
    assert (heat.zmin, heat.zmax) == pytest.approx((-1.4, 1.4))
    assert figure.layout.xaxis.ticktext == ("&lt;b&gt; / y", "x")
    assert len(figure.layout.shapes) == 1
    with pytest.raises(ValueError, match="2 columns"):
        recovery_heatmap(np.zeros((2, 2)), ["a"], ["b", "c"])


def test_values_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="3 bars"):
        divergence_bars(np.zeros(3), ["a"], selected=0)
    with pytest.raises(ValueError, match="2 layers of 3 heads"):
        switches_data(2, 3, labels={}, costs=np.zeros((3, 2)))
