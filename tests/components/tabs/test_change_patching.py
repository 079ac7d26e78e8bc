"""The Change it tab in Why?: patches, their map and their link."""

from __future__ import annotations

import pytest
import torch

from components.share.address import page_values
from components.share.link import decode, encode
from components.share.opening import open_link
from components.state.session import Session
from components.tabs.change.handlers import patching
from components.tabs.change.state import ChangeState
from components.tabs.change.tab import NAME
from components.tabs.change.views.patching import choices, chosen
from gpt import Edits, Generation
from tests.components.tabs.change_session import analysed, drawn, finish, generated, other_model, said


@pytest.fixture(scope="module")
def document() -> Generation:
    return generated()


@pytest.fixture
def session(document: Generation) -> Session:
    """A session with a measured text."""
    return analysed(Session(document.copy()))


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
    _, edited = effect.logits(position)
    difference = (edited[pair.answer] - edited[pair.other]).item()
    expected = sweep.corrupted + sweep.recovered[layer, position].item() * (sweep.clean - sweep.corrupted)
    assert difference == pytest.approx(expected, abs=1e-3)


def test_pairs_that_cannot_be_compared_are_refused_with_a_sentence(session):
    def trouble(clean: str, corrupted: str, **answers: object) -> str:
        patching.set_prompt("clean", session, clean)
        patching.set_prompt("corrupted", session, corrupted)
        finish(patching.sweep(session))
        for name, value in answers.items():
            finish(patching.choose_answer(name, session, [value]))
        return said(session, "trouble")

    assert "but both need the same number" in trouble("the cat", "the catalogue")
    assert drawn(session, "map")["figure"] is None
    assert "Type both" in trouble("", "the")
    assert "the same." in trouble("the cat", "the cat")
    assert trouble("the cat", "the dog") == ""
    assert "The logit difference" in said(session, "map")
    assert "must differ" in trouble("the cat", "the dog", answer=7, other=7)
    assert drawn(session, "map")["figure"] is None
    assert "is not a single token" in trouble("the cat", "the dog", answer="zebra")
    finish(patching.choose_activation(session, "ln_1"))
    assert session.state(ChangeState).patched == "resid_pre"


def test_what_was_measured_on_a_model_is_not_shown_for_another(session):
    session.change(ChangeState, clean="the cat", corrupted="the dog")
    finish(patching.sweep(session))
    assert drawn(session, "map")["figure"] is not None
    assert chosen("answer", session.snapshot()) == [session.state(ChangeState).sweeps.pair.answer]
    session.document = other_model()
    assert drawn(session, "map")["figure"] is None
    assert (choices(session.snapshot()), chosen("answer", session.snapshot())) == ([], [])
