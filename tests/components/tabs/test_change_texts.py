"""The Change it tab in Why?: both texts, and the program that generates them."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
import torch

from components.labels import quoted
from components.state.jobs import Job, stop
from components.state.session import Session
from components.tabs.change import edits as change
from components.tabs.change import tab as texts
from components.tabs.change.edits import Writing
from components.tabs.change.effect import read_prompt
from gpt import Edits, Generation, SamplingParams
from gpt.analysis.patching import patch_from
from tests.components.drawing import Drawn
from tests.gpt.fake_models import tiny_model


@pytest.fixture
def drawn() -> Drawn:
    document = Generation(tiny_model(), "the cat sat")
    list(document.steps(SamplingParams(temperature=2.0, seed=3), 6))
    document.read()
    drawn = Drawn(Session(document), texts.tab)
    drawn.session.settings = replace(drawn.session.settings, seed="3", length=6, temperature=2.0, pace=0)
    drawn.update()
    return drawn


@pytest.fixture
def session(drawn: Drawn) -> Session:
    return drawn.session


def test_both_texts_are_those_of_both_models_and_part_where_it_is_said(drawn, session):
    session.edits = Edits(attn_scale={0: 0.0, 1: 0.0})
    steps = texts.generate_both(session)
    next(steps)
    assert session.busy
    list(steps)
    assert not session.busy
    pair, prompt = session.state(Writing).written, session.document.prompt_ids
    for text, edits in ((pair.original, None), (pair.edited, session.edits)):
        alone = Generation(session.document.loaded, prompt, edits=edits)
        list(alone.steps(pair.params, 6))
        assert list(text.ids) == alone.ids
    index = pair.divergence_index
    left, right = (quoted(session.document.tokenizer, text.ids[index]) for text in (pair.original, pair.edited))
    shown = drawn.update()
    parted = f"diverge: the original continues with {left}, the changed text with {right}."
    assert parted in shown["change-parted"]["text"]
    for side, text in (("original", pair.original), ("edited", pair.edited)):
        assert len(shown[f"change-{side}"]["lines"]) == len(text.ids)
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
    assert len(session.state(Writing).written.original.ids) == session.document.n_prompt + 1
    assert drawn.update()["change-own"]["text"]
    session.document.append(7)
    session.document.read()
    assert drawn.update()["change-own"]["text"] == ""
    assert drawn.views["change-edited"]["doc"] == ""


def test_both_texts_pause_without_a_place(session, monkeypatch):
    admission, resting = session.document.loaded.engine.admission, []

    class Watched(Event):
        def wait(self, timeout: float | None = None) -> bool:
            resting.append(len(admission._resting))
            return True

    monkeypatch.setattr(texts, "started", lambda *_: contextlib.nullcontext(Job(stopped=Watched())))
    session.settings = replace(session.settings, length=3, pace=5)
    list(texts.generate_both(session))
    assert resting == [1, 1, 1]


def test_both_texts_wait_for_one_place_and_give_it_back(drawn, session):
    admission = session.document.loaded.engine.admission
    with contextlib.ExitStack() as others:
        for _ in range(admission.limit):
            others.enter_context(admission.enter())
        steps = texts.generate_both(session)
        next(steps)
        next(steps)
        assert "ahead of you" in drawn.update()["change-status"]["text"]
        assert session.state(Writing).growing is None
    list(steps)
    assert len(session.state(Writing).written.edited.ids) > session.document.n_prompt
    assert admission.n_admitted == 0


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
    assert [space["original"].ids, space["edited"].ids] == [list(pair.original.ids), list(pair.edited.ids)]
    assert all(space[name].text in printed for name in ("original", "edited"))
    torch.testing.assert_close(space["states"], session.snapshot()[change.effect].states, atol=1e-5, rtol=1e-4)


def test_a_prompt_that_is_not_the_tokens_of_its_text_is_a_list_in_the_program(session):
    read = read_prompt(session.document.loaded, (116, 104), "")
    assert "prompt = [116, 104]" in texts.program(read, Edits(), texts.DEFAULT_PARAMS, 5)
