"""The Change it tab in Why?: edits and their effect in numbers, both texts, and patches."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from components.labels import quoted, token_text, visible
from components.share.address import page_values
from components.state.jobs import stop
from components.state.session import Session
from components.tabs.change import edits as change
from components.tabs.change import patching
from components.tabs.change import tab as texts
from components.tabs.change.edits import Editing, Writing
from components.tabs.change.effect import (
    describe_edits,
    head_costs,
    measure,
    read_document,
    summary,
)
from components.tabs.change.patching import Patching
from components.tabs.change.tab import tab
from gpt import Edits, Generation, SamplingParams
from gpt.analysis.patching import patch_from
from gpt.analysis.predictions import kl_divergence
from tests.components.drawing import Drawn, as_read
from tests.gpt.fake_models import tiny_model


@pytest.fixture(scope="module")
def document() -> Generation:
    """A text whose second part was generated."""
    made = Generation(tiny_model(), "the cat sat")
    list(made.steps(SamplingParams(temperature=2.0, seed=3), 6))
    made.read()
    return made


@pytest.fixture
def drawn(document: Generation) -> Drawn:
    drawn = Drawn(Session(document.copy()), tab)
    drawn.session.settings = replace(drawn.session.settings, seed="3", length=6, temperature=2.0, pace=0)
    drawn.update()
    return drawn


@pytest.fixture
def session(drawn: Drawn) -> Session:
    return drawn.session


def other_model() -> Generation:
    return as_read(tiny_model(n_layer=1, seed=9), "the dog")


def test_what_belongs_together_is_described_together_and_many_edits_are_counted(document):
    config = document.loaded.model.config
    every = range(config.n_layer)
    assert describe_edits(Edits({}, {1: 0.0}, {1: 0.0}), config) == ["layer 1 off"]
    assert describe_edits(Edits({}, dict.fromkeys(every, 0.0)), config) == ["attention in all layers off"]
    heads = {(0, head): 0.5 for head in range(config.n_head)}
    assert describe_edits(Edits(heads), config) == ["all heads of layer 0 × 0.5"]
    many = Edits({(layer, 0): 0.1 * layer for layer in range(20)})
    assert summary(many, replace(config, n_layer=20)).endswith("; 14 more")


def test_switches_replace_all_factors_leave_the_other_edits_and_select_their_head(drawn, session):
    session.edits = Edits({(0, 0): 0.0}, activation="relu", drop_positions=True)
    change.set_switches(session, {"edits": "h0.1=0.5", "n": 7, "layer": 0, "head": 1})
    assert session.edits == Edits({(0, 1): 0.5}, activation="relu", drop_positions=True)
    for wrong, says in ((None, "'None' is not an edit"), ("h9.0=0", "layer 9")):
        with pytest.raises(ValueError, match=says):
            change.set_switches(session, {"edits": wrong, "n": 7})
    shown = drawn.update()
    assert "layer 0, head 1 × 0.5" in shown["change-lead"]["text"]
    switches = shown["change-switches"]
    assert (switches["edits"], switches["answered"], switches["selected"]) == ("h0.1=0.5", 7, [0, 1])


def test_another_model_keeps_the_edits_that_fit_names_the_others_and_they_leave_the_link(drawn, session):
    session.edits = Edits({(0, 0): 0.0}, {1: 0.0}, drop_positions=True)
    assert drawn.update()["change-notice"]["text"] == ""
    session.document = other_model()
    shown = drawn.update()
    assert "layer 1 attention off" in shown["change-notice"]["text"]
    assert "layer 1" not in shown["change-lead"]["text"]
    assert page_values(session.snapshot(), {})["edits"] == "h0.0=0,nopos"
    change.drop_positions(session, False)
    assert session.edits == Edits({(0, 0): 0.0})
    assert drawn.update()["change-notice"]["text"] == ""
    change.reset(session)
    assert "edits" not in page_values(session.snapshot(), {})


def test_the_effect_is_the_divergence_of_both_models_reading_the_same_text(document):
    edits = Edits({(0, 1): 0.0}, mlp_scale={1: 0.5}, drop_positions=True)
    text = read_document(document, "source")
    effect = measure(text, edits)
    edited = as_read(document.loaded, document.ids[: document.n_read], edits=edits)
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
    updated, effect = drawn.update(), session.snapshot()[change.effect]
    shown = updated["change-bars"]
    assert updated["change-legend"]["text"]
    before, after = ((logits / session.settings.temperature).softmax(0) for logits in effect.logits(3))
    follower = session.document.ids[4]
    _, old, new, name, _ = shown["bars"][shown["chosen"]]
    assert old == pytest.approx(before[follower].item(), rel=1e-3)
    assert new == pytest.approx(after[follower].item(), rel=1e-3)
    assert " → " in name
    best = {int(p.argmax()) for p in (before, after)}
    assert {shown["bars"][0][0]} <= {visible(token_text(session.document.tokenizer, i)) for i in best}
    change.reset(session)
    updated = drawn.update()  # there is nothing to compare
    assert updated["change-divergence"]["figure"] is None
    assert updated["change-legend"]["text"] == ""


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


# Both texts


def test_both_texts_are_those_of_both_models_and_part_where_it_is_said(drawn, session):
    session.edits = Edits(attn_scale={0: 0.0, 1: 0.0})
    steps = texts.generate_both(session)
    next(steps)
    assert session.busy
    list(steps)
    assert not session.busy
    pair, prompt = session.state(Writing).written, session.document.prompt_ids
    for ids, edits in zip(pair.ids, (None, session.edits), strict=True):
        alone = Generation(session.document.loaded, prompt, edits=edits)
        list(alone.steps(pair.params, 6))
        assert list(ids) == alone.ids
    index = pair.divergence_index
    left, right = (quoted(session.document.tokenizer, ids[index]) for ids in pair.ids)
    shown = drawn.update()
    parted = f"diverge: the original continues with {left}, the changed text with {right}."
    assert parted in shown["change-parted"]["text"]
    for side, ids in zip(("original", "edited"), pair.ids, strict=True):
        assert len(shown[f"change-{side}"]["lines"]) == len(ids)
        assert shown[f"change-{side}"]["parted"] == index
    assert shown["change-original"]["selected"] == index - 1
    assert "Reset" in shown["change-own"]["text"]
    before = session.selection
    change.select_bar(session, {"x": 3})  # the text differs from Write's, so only this tab selects
    assert drawn.update()["change-original"]["selected"] == 3
    assert session.selection == before
    assert shown["change-stale"]["text"] == ""
    change.drop_positions(session, True)
    assert "attention in all layers off" in drawn.update()["change-stale"]["text"]  # the edits that generated it
    change.reset(session)
    assert drawn.update()["change-own"]["text"] == shown["change-parted"]["text"] == ""
    change.select_position(session, 2)
    assert session.selection.position == drawn.update()["change-original"]["selected"] == 2


def test_both_texts_end_when_they_are_stopped_and_go_when_the_playground_has_another_text(drawn, session):
    session.settings = replace(session.settings, length=12, pace=5)
    before = dict(drawn.views["change-bars"])
    steps = texts.generate_both(session)
    for _ in range(3):
        next(steps)
    assert "previous text stays" in drawn.update()["change-bars-note"]["text"]
    assert drawn.views["change-bars"] == before
    stop(Writing, session)
    list(steps)
    assert len(session.state(Writing).written.ids[0]) == session.document.n_prompt + 1
    assert drawn.update()["change-own"]["text"]
    session.document.append(7)
    session.document.read()
    assert drawn.update()["change-own"]["text"] == ""
    assert drawn.views["change-edited"]["doc"] == ""


def run_program(source: str, loaded: Any) -> tuple[dict[str, Any], str]:
    """Run the program with this model in place of the named one."""
    out, space = io.StringIO(), {}
    head, body = source.split("\nloaded = ", 1)
    exec(head, space)
    with contextlib.redirect_stdout(out):
        exec("loaded = given\n" + body.split("\n", 1)[1], space | (made := {"given": loaded}) | space, made)
    return made, out.getvalue()


@pytest.mark.parametrize("patched", [False, True])
def test_the_program_writes_both_texts_and_measures_the_same(drawn, session, patched):
    loaded = session.document.loaded
    edits = Edits({(0, 1): 0.0}, activation="relu")
    if patched:
        clean = loaded.tokenizer.encode("the dog")
        edits = replace(edits, patches=(patch_from(loaded.model, clean, "resid_pre", 1, 4),))
    session.edits = edits
    list(texts.generate_both(session))
    source = drawn.update()["card.change"]["live.change-code"]["text"]
    space, printed = run_program(source, loaded)
    pair = session.state(Writing).written
    assert [space["original"].ids, space["edited"].ids] == [*map(list, pair.ids)]
    assert all(space[name].text in printed for name in ("original", "edited"))
    torch.testing.assert_close(space["states"], session.snapshot()[change.effect].states, atol=1e-5, rtol=1e-4)


# Patches


@pytest.fixture
def swept(drawn: Drawn) -> Drawn:
    """The tab with the map of a sweep."""
    patching.set_prompts(drawn.session, "the cat", "the dog")
    drawn.session.change(Patching, patched="attn_out")
    list(patching.sweep(drawn.session))
    return drawn


def test_a_kept_patch_does_what_its_cell_of_the_map_says(swept, session):
    sweeps = session.state(Patching).sweeps
    sweep = sweeps.by_name["attn_out"]
    layer, position = 1, len(sweeps.clean) - 1
    for sent in ({"x": position, "y": 99}, {"x": "0", "y": 0}, {}):
        patching.choose_cell(session, sent)
        patching.keep(session)
        assert session.edits == Edits()
    patching.choose_cell(session, {"x": position, "y": layer})
    patching.keep(session)
    assert f"attention output of layer {layer}" in swept.update()["change-lead"]["text"]
    effect = session.snapshot()[change.effect]
    assert effect.text.ids == session.edits_on == sweeps.corrupted
    _, edited = effect.logits(position)
    difference = (edited[sweeps.answer] - edited[sweeps.other]).item()
    expected = sweep.corrupted + sweep.recovered[layer, position].item() * (sweep.clean - sweep.corrupted)
    assert difference == pytest.approx(expected, abs=1e-3)


def test_pairs_that_cannot_be_compared_are_refused_with_a_sentence(swept, session):
    def trouble(clean: str, corrupted: str, **answers: object) -> str:
        patching.type_prompt(0, session, clean)
        patching.type_prompt(1, session, corrupted)
        list(patching.sweep(session))
        for name, value in answers.items():
            list(patching.choose_answer(name, session, [value]))
        return swept.update()["change-trouble"]["text"]

    assert "but both need the same number" in trouble("the cat", "the catalogue")
    assert swept.views["change-map"]["figure"] is None
    assert "Type both" in trouble("", "the")
    assert "the same." in trouble("the cat", "the cat")
    assert trouble("the cat", "the dog") == ""
    assert "The logit difference" in swept.views["change-map"]["text"]
    assert "must differ" in trouble("the cat", "the dog", answer=7, other=7)
    assert swept.views["change-map"]["figure"] is None
    assert "is not a single token" in trouble("the cat", "the dog", answer="zebra")
