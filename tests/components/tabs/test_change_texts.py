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
from components.tabs.change.effect import read_prompt
from components.tabs.change.handlers import editing, generation
from components.tabs.change.program import program
from components.tabs.change.state import ChangeState, is_stale
from components.tabs.change.views.texts import code
from gpt import Edits, Generation
from gpt.analysis.patching import patch_from
from tests.components.tabs.change_session import PARAMS, analysed, drawn, finish, generated, said


@pytest.fixture(scope="module")
def document() -> Generation:
    return generated()


@pytest.fixture
def session(document: Generation) -> Session:
    """A session with a measured text."""
    return analysed(Session(document.copy()))


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
    left, right = (quoted(session.document.tokenizer, text.ids[index]) for text in (pair.original, pair.edited))
    assert f"diverge: the original continues with {left}, the changed text with {right}." in said(session, "parted")
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
    assert "attention in all layers off" in said(session, "stale")  # the edits that generated it
    editing.reset(session)
    assert session.state(ChangeState).written is None
    assert said(analysed(session), "own") == said(session, "parted") == ""


def test_both_texts_end_when_they_are_stopped_and_go_when_the_playground_has_another_text(session):
    session.settings = replace(session.settings, length=12, pace=5)
    steps = generation.generate_both(session)
    for _ in range(3):
        next(steps)
    stop(ChangeState, session, "writing")
    finish(steps)
    assert len(session.state(ChangeState).written.original.ids) == session.document.n_prompt + 1
    assert said(analysed(session), "own")
    session.document.append(7)
    session.document.read()
    assert said(analysed(session), "own") == ""
    assert drawn(session, "edited")["lines"] == []


def test_both_texts_pause_without_a_place(session, monkeypatch):
    admission, resting = session.document.loaded.engine.admission, []

    class Watched(Event):
        def wait(self, timeout: float | None = None) -> bool:
            resting.append(len(admission._resting))
            return True

    monkeypatch.setattr(generation, "started", lambda *_: contextlib.nullcontext(Job(stopped=Watched())))
    session.settings = replace(session.settings, length=3, pace=5)
    finish(generation.generate_both(session))
    assert resting == [1, 1, 1]


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


def run_program(source: str, loaded: Any) -> tuple[dict[str, Any], str]:
    """Run the program with this model in place of the named one."""
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
    assert "prompt = [116, 104]" in program(read_prompt(document.loaded, (116, 104), ""), Edits(), PARAMS, 5)
