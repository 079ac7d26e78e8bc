"""The Change it tab in Why?: the effect of edits on a text, in numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from components.labels import token_text, visible
from components.state.jobs import stop
from components.state.session import Session
from components.tabs.change.effect import head_costs, measure, read_document, read_prompt
from components.tabs.change.handlers import editing
from components.tabs.change.handlers.measurement import ANALYSIS
from components.tabs.change.state import ChangeState
from gpt import Edits, Generation
from gpt.analysis.predictions import kl_divergence
from tests.components.tabs.change_session import analysed, drawn, finish, generated, said


@pytest.fixture(scope="module")
def document() -> Generation:
    return generated()


@pytest.fixture
def session(document: Generation) -> Session:
    """A session with a measured text."""
    return analysed(Session(document.copy()))


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


def test_the_bars_are_the_probabilities_before_and_after_with_the_token_that_follows_marked(session):
    session.select(position=3)
    session.edits = Edits(attn_scale={0: 0.0})
    shown, effect = drawn(analysed(session), "bars"), session.state(ChangeState).effect
    before, after = ((logits / session.settings.temperature).softmax(0) for logits in effect.logits(3))
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


def test_a_read_text_does_not_change_when_the_document_grows(document):
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
        stop(ChangeState, session, "costing")
        while True:
            progress(1, 9)

    monkeypatch.setattr(editing, "head_costs", stopped)
    finish(editing.switch_off_costliest(session))
    state = session.state(ChangeState)
    assert (session.edits, state.costs, state.costing) == (Edits(), None, None)


def test_every_view_belongs_to_the_text_that_was_measured_while_the_next_is_written(session):
    before = drawn(session, "original")["lines"]
    turn = session.lock.begin()
    session.document.append(7)
    assert ANALYSIS.wanted(session.snapshot()) is None
    assert "still writing" in said(session, "status")
    assert drawn(session, "original")["lines"] == before
    session.lock.end(turn)
    session.document.read()
    assert len(drawn(analysed(session), "original")["lines"]) == len(before) + 1
