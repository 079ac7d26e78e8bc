"""The Change it tab in Why?: patches, their map and their link."""

from __future__ import annotations

import pytest
import torch

from components.share.address import page_values
from components.share.link import encode
from components.share.opening import open_link
from components.state.session import Session
from components.tabs.change import edits as change
from components.tabs.change import patching
from components.tabs.change.patching import Patching, choices, chosen, prompts
from components.tabs.change.tab import tab
from gpt import Edits, Generation
from tests.components.drawing import Drawn
from tests.gpt.fake_models import tiny_model


@pytest.fixture
def drawn() -> Drawn:
    """A session with the map of a sweep."""
    document = Generation(tiny_model(), "the cat sat")
    document.read()
    drawn = Drawn(Session(document), tab)
    drawn.session.change(Patching, clean="the cat", corrupted="the dog", patched="attn_out")
    list(patching.sweep(drawn.session))
    return drawn


def other_model() -> Generation:
    made = Generation(tiny_model(n_layer=1, seed=9), "the dog")
    made.read()
    return made


def test_a_link_with_a_patch_opens_on_its_prompt_until_there_is_another_text(drawn):
    session = drawn.session
    patching.choose_cell(session, {"x": 4, "y": 1})
    patching.keep(session)
    drawn.update()
    values = page_values(session.snapshot())
    query = encode({name: values[name] for name in ("tab", "edits", "edits_on")})

    opened = Session(session.document.copy())
    list(open_link(opened, query, [tab.name], {}))
    again = Drawn(opened, tab)
    again.update()
    s = opened.snapshot()
    assert prompts(s) == ("the cat", "the dog")
    assert list(s[change.text].ids) == session.document.loaded.tokenizer.encode("the dog")
    torch.testing.assert_close(s[change.effect].states, session.snapshot()[change.effect].states)
    opened.document = other_model()
    assert "attention output of layer 1" in again.update()["change-notice"]["text"]
    assert opened.snapshot()[change.effect].edits == Edits()
    assert not opened.snapshot()[change.text].own


def test_a_kept_patch_does_what_its_cell_of_the_map_says(drawn):
    session = drawn.session
    sweeps = session.state(Patching).sweeps
    pair, sweep = sweeps.pair, sweeps.by_name["attn_out"]
    layer, position = 1, len(pair.clean) - 1
    for sent in ({"x": position, "y": 99}, {"x": "0", "y": 0}, {}):
        patching.choose_cell(session, sent)
        patching.keep(session)
        assert session.edits == Edits()
    patching.choose_cell(session, {"x": position, "y": layer})
    patching.keep(session)
    assert f"attention output of layer {layer}" in drawn.update()["change-lead"]["text"]
    effect = session.snapshot()[change.effect]
    assert effect.text.ids == session.edits_on == pair.corrupted
    _, edited = effect.logits(position)
    difference = (edited[pair.answer] - edited[pair.other]).item()
    expected = sweep.corrupted + sweep.recovered[layer, position].item() * (sweep.clean - sweep.corrupted)
    assert difference == pytest.approx(expected, abs=1e-3)


def test_pairs_that_cannot_be_compared_are_refused_with_a_sentence(drawn):
    def trouble(clean: str, corrupted: str, **answers: object) -> str:
        patching.set_prompt("clean", drawn.session, clean)
        patching.set_prompt("corrupted", drawn.session, corrupted)
        list(patching.sweep(drawn.session))
        for name, value in answers.items():
            list(patching.choose_answer(name, drawn.session, [value]))
        return drawn.update()["change-trouble"]["text"]

    assert "but both need the same number" in trouble("the cat", "the catalogue")
    assert drawn.views["change-map"]["figure"] is None
    assert "Type both" in trouble("", "the")
    assert "the same." in trouble("the cat", "the cat")
    assert trouble("the cat", "the dog") == ""
    assert "The logit difference" in drawn.views["change-map"]["text"]
    assert "must differ" in trouble("the cat", "the dog", answer=7, other=7)
    assert drawn.views["change-map"]["figure"] is None
    assert "is not a single token" in trouble("the cat", "the dog", answer="zebra")


def test_what_was_measured_on_a_model_is_not_shown_for_another(drawn):
    session = drawn.session
    assert drawn.update()["change-map"]["figure"] is not None
    assert chosen("answer", session.snapshot()) == [session.state(Patching).sweeps.pair.answer]
    session.document = other_model()
    assert drawn.update()["change-map"]["figure"] is None
    assert (choices(session.snapshot()), chosen("answer", session.snapshot())) == ([], [])
