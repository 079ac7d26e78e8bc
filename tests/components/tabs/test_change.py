"""The Change it tab in Why?: edits, their descriptions, and their effect on a text in numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from components.labels import token_text, visible
from components.share.address import page_values
from components.state.jobs import stop
from components.state.session import Session
from components.tabs.change import edits as change
from components.tabs.change.edits import Editing
from components.tabs.change.effect import (
    EXPERIMENTS,
    describe_edits,
    head_costs,
    measure,
    read_document,
    read_prompt,
    summary,
)
from components.tabs.change.tab import tab
from gpt import Edits, Generation, SamplingParams
from gpt.analysis.predictions import kl_divergence
from tests.components.drawing import Drawn, spoken_in
from tests.gpt.fake_models import tiny_model

PARAMS = SamplingParams(temperature=2.0, seed=3)


@pytest.fixture(scope="module")
def document() -> Generation:
    """A text whose second part was generated."""
    made = Generation(tiny_model(), "the cat sat")
    list(made.steps(PARAMS, 6))
    made.read()
    return made


@pytest.fixture
def drawn(document: Generation) -> Drawn:
    drawn = Drawn(Session(document.copy()), tab)
    drawn.update()
    return drawn


@pytest.fixture
def session(drawn: Drawn) -> Session:
    return drawn.session


@pytest.mark.parametrize("language", ["en", "zh"])
def test_different_edits_are_described_differently_and_none_is_silent(document, language):
    config = document.loaded.model.config
    whole = Edits({(0, head): 0.0 for head in range(config.n_head)})
    edits = [*(make(config) for make in EXPERIMENTS.values()), whole, Edits(mlp_scale={1: 0.5}), Edits({(1, 0): 2.0})]
    described = [spoken_in(language, summary, each, config) for each in edits]
    assert all(described)
    assert len(set(described)) == len(described)
    assert spoken_in(language, summary, Edits(), config) == ""
    assert spoken_in(language, summary, Edits(activation=config.activation), config) == ""


def test_what_belongs_together_is_described_together_and_many_edits_are_counted(document):
    config = document.loaded.model.config
    every = range(config.n_layer)
    assert describe_edits(Edits({}, {1: 0.0}, {1: 0.0}), config) == ["layer 1 off"]
    assert describe_edits(Edits({}, dict.fromkeys(every, 0.0)), config) == ["attention in all layers off"]
    heads = {(0, head): 0.5 for head in range(config.n_head)}
    assert describe_edits(Edits(heads), config) == ["all heads of layer 0 × 0.5"]
    many = Edits({(layer, 0): 0.1 * layer for layer in range(20)})
    assert summary(many, replace(config, n_layer=20)).endswith("; 14 more")


@pytest.mark.parametrize(
    "sent", [{}, {"edits": "h9.0=0"}, {"edits": "nopos"}, {"edits": ["a0=0"]}, {"edits": "a0=nan"}]
)
def test_what_the_switches_send_is_checked(session, sent):
    before = session.edits = Edits({(0, 0): 0.5})
    with pytest.raises(ValueError, match="could not be read"):
        change.set_switches(session, {**sent, "n": 3})
    assert session.edits is before
    assert session.state(Editing).n_switched == 3  # the browser shows the server's edits again


def test_switches_replace_all_factors_leave_the_other_edits_and_select_their_head(drawn, session):
    session.edits = Edits({(0, 0): 0.0}, activation="relu", drop_positions=True)
    change.set_switches(session, {"edits": "h0.1=0.5", "n": 7, "layer": 0, "head": 1})
    assert session.edits == Edits({(0, 1): 0.5}, activation="relu", drop_positions=True)
    shown = drawn.update()
    assert "layer 0, head 1 × 0.5" in shown["change-lead"]["text"]
    switches = shown["change-switches"]
    assert (switches["edits"], switches["answered"], switches["selected"]) == ("h0.1=0.5", 7, [0, 1])


def test_another_model_keeps_the_edits_that_fit_names_the_others_and_they_leave_the_link(drawn, session):
    session.edits = Edits({(0, 0): 0.0}, {1: 0.0}, drop_positions=True)
    assert drawn.update()["change-notice"]["text"] == ""
    session.document = Generation(tiny_model(n_layer=1, seed=9), "the dog")
    session.document.read()
    shown = drawn.update()
    assert "layer 1 attention off" in shown["change-notice"]["text"]
    assert "layer 1" not in shown["change-lead"]["text"]
    assert page_values(session.snapshot())["edits"] == "h0.0=0,nopos"
    change.drop_positions(session, False)
    assert session.edits == Edits({(0, 0): 0.0})
    assert drawn.update()["change-notice"]["text"] == ""
    change.reset(session)
    assert "edits" not in page_values(session.snapshot())


def test_a_page_without_a_text_changes_nothing():
    drawn = Drawn(Session(None), tab)
    change.set_switches(drawn.session, {"edits": "a0=0"})
    shown = drawn.update()
    assert drawn.session.edits == Edits()
    assert shown["change-bars"]["bars"] == shown["change-original"]["lines"] == []
    assert shown["change-switches"]["n_layer"] == 0


def test_an_experiment_is_described_while_its_edits_are_in_force(drawn, session):
    change.try_experiment("no_positions", session)
    assert "causal mask" in drawn.update()["change-status"]["text"]
    change.drop_positions(session, False)
    assert drawn.update()["change-status"]["text"] == ""


@pytest.mark.parametrize("sent", [{}, {"index": "1"}, {"index": -1}, {"index": 99}, {"x": None}, {"index": True}])
def test_only_positions_that_were_read_are_selected(session, sent):
    before = session.selection
    change.select_position(session, sent.get("index"))
    change.select_bar(session, sent)
    assert session.selection == before


def test_the_effect_is_the_divergence_of_both_models_reading_the_same_text(document):
    edits = Edits({(0, 1): 0.0}, mlp_scale={1: 0.5}, drop_positions=True)
    text = read_document(document, "source")
    effect = measure(text, edits)
    edited = Generation(document.loaded, document.ids[: document.n_read], edits=edits)
    edited.read()
    for position in range(document.n_read):
        p, q = (d.logits(position).softmax(0) for d in (document, edited))
        for ours, theirs in zip(effect.logits(position), (p, q), strict=True):
            torch.testing.assert_close(ours.softmax(0), theirs, atol=1e-5, rtol=0)
        assert effect.bits[position] == pytest.approx(kl_divergence(p.log(), q.log()).item(), abs=1e-4)
    assert effect.before == pytest.approx(document.statistics().mean_surprisal, abs=1e-5)
    assert effect.after == pytest.approx(edited.statistics().mean_surprisal, abs=1e-5)
    nothing = measure(text, Edits())
    assert nothing.bits.max() == 0
    assert nothing.after == nothing.before


def test_the_bars_are_the_probabilities_before_and_after_with_the_token_that_follows_marked(drawn, session):
    session.select(position=3)
    session.edits = Edits(attn_scale={0: 0.0})
    shown, effect = drawn.update()["change-bars"], session.snapshot()[change.effect]
    before, after = ((logits / session.settings.temperature).softmax(0) for logits in effect.logits(3))
    follower = session.document.ids[4]
    _, old, new, name, _ = shown["bars"][shown["chosen"]]
    assert old == pytest.approx(before[follower].item(), rel=1e-3)
    assert new == pytest.approx(after[follower].item(), rel=1e-3)
    assert " → " in name
    best = {int(p.argmax()) for p in (before, after)}
    assert {shown["bars"][0][0]} <= {visible(token_text(session.document.tokenizer, i)) for i in best}
    change.reset(session)
    assert drawn.update()["change-divergence"]["figure"] is None  # there is nothing to compare


def test_a_read_text_does_not_change_when_the_document_grows(document):
    own = document.copy()
    text = read_document(own, "source")
    before = text.states.clone()
    own.go_back(2)
    own.append(7, 8, 9)
    own.read()
    assert torch.equal(text.states, before)


def test_a_text_is_read_by_the_unedited_model(document):
    ids = document.ids
    edited = Generation(document.loaded, ids, edits=Edits(attn_scale={0: 0.0}))
    edited.read()
    for read in (read_document(edited, ""), read_prompt(document.loaded, ids, "")):
        torch.testing.assert_close(read.states, document.states(), atol=1e-5, rtol=1e-4)


def test_the_cost_of_a_head_is_what_switching_it_off_alone_changes(document):
    text, reports = read_document(document, "source"), []
    costs = head_costs(text, lambda *counts: reports.append(counts))
    assert reports[-1] == (costs.bits.size, costs.bits.size)
    for layer, head in np.ndindex(costs.bits.shape):
        alone = measure(text, Edits({(layer, head): 0.0})).bits.mean()
        assert costs.bits[layer, head] == pytest.approx(alone, rel=1e-4, abs=1e-6)


def test_the_costliest_head_is_switched_off_and_the_costs_belong_to_one_text(drawn, session):
    list(change.switch_off_costliest(session))
    costs = session.state(Editing).costs
    head = tuple(int(i) for i in np.unravel_index(costs.bits.argmax(), costs.bits.shape))
    assert session.edits == Edits({head: 0.0})
    assert len(drawn.update()["change-switches"]["costs"]) == costs.bits.size
    session.document.append(7)
    session.document.read()
    assert drawn.update()["change-switches"]["costs"] is None


def test_a_stopped_measurement_changes_no_edit(session, monkeypatch):
    def stopped(text, progress):
        stop(Editing, session)
        while True:
            progress(1, 9)

    monkeypatch.setattr(change, "head_costs", stopped)
    list(change.switch_off_costliest(session))
    state = session.state(Editing)
    assert (session.edits, state.costs, state.job) == (Edits(), None, None)
