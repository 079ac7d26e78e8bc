"""The Inside tab follows the text and the selection, computes only the open part, and respects its memory limit."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from weakref import ref

import numpy as np
import pytest
import torch

from components.downloads import DownloadState
from components.state.reads import Reads, is_same
from components.state.selection import NEWEST, Selection
from components.tabs.inside import analysis, handlers, trace_file
from components.tabs.inside.head_overview import HeadOverview
from components.tabs.inside.recording import Recording
from components.tabs.inside.state import InsideState
from components.tabs.inside.views import VIEWS
from gpt import GPT, Generation, GPTConfig, Tokenizer, Trace
from tests.components.tabs.inside_session import Inside, document_of, trace_of
from tests.conftest import randomized

PARTS = {"machine": "flow", "one_head": "stages", "stream": "stream-tokens", "embeddings": "nearest-tokens"}
LOOK = Selection(position=11, layer=1, head=2)


@pytest.fixture
def document(byte_tokenizer: Tokenizer) -> Generation:
    config = GPTConfig(vocab_size=byte_tokenizer.n_vocab, block_size=96, n_layer=3, n_head=3, n_embd=36)
    return document_of(randomized(GPT(config), 0.2).eval(), byte_tokenizer)


@pytest.mark.parametrize("part", PARTS)
def test_only_the_open_part_is_drawn_and_computed(document: Generation, part: str) -> None:
    inside = Inside(document, part=part)
    for name in PARTS.values():
        assert bool(inside.shown(name)) == (name == PARTS[part])
    assert (inside.state.overview is not None) == (part == "machine")
    assert (inside.state.position_trace is not None) == (part == "stream")
    assert inside.analyse() == 0  # nothing is missing any more


def test_nothing_is_computed_without_a_text(document: Generation) -> None:
    inside = Inside(None)
    assert inside.state.recording is None
    assert "no text" in inside.shown("inside-notice")["text"].lower()
    assert inside.shown("flow") == {"tokens": None, "text": ""}
    inside.session.document = Generation(document.loaded, "cat")  # not read yet
    assert inside.analyse() == 0


@pytest.mark.parametrize("part", ["machine", "one_head"])
def test_another_selection_runs_no_model(document: Generation, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = Inside(document, part=part)
    monkeypatch.setattr(GPT, "hidden_states", lambda *_, **__: pytest.fail("the model ran"))
    for selection in (Selection(), Selection(position=0), replace(LOOK, layer=2), replace(LOOK, head=0)):
        inside.session.selection = selection
        assert inside.analyse() == 0
        assert inside.shown(PARTS[part])["layer"] == selection.layer


def test_a_new_token_is_the_only_one_that_the_model_reads(
    document: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, read, plain = Inside(document), [], GPT.hidden_states

    def count(self: GPT, idx: torch.Tensor, **options: Any) -> torch.Tensor:
        if options.get("trace") is not None:
            read.append(idx.shape[1])
        return plain(self, idx, **options)

    monkeypatch.setattr(GPT, "hidden_states", count)
    inside.write(5)
    assert read == [1]
    assert inside.shown("flow")["total"] == len(document.ids)


@pytest.mark.parametrize("part", PARTS)
def test_no_picture_of_another_branch_is_drawn_while_it_is_overwritten(document: Generation, part: str) -> None:
    inside = Inside(document, part=part)
    before = inside.state.recording
    with inside.session.changing():
        document.append(7, after=3)
        document.read()
    assert inside.shown(PARTS[part]) == {}  # unchanged
    rounds = analysis.record(inside.session, 2**20)
    next(rounds)
    now = inside.state.recording
    assert now is not before
    assert now.ids == tuple(document.ids)
    with inside.session.changing():
        document.undo()
    assert inside.shown(PARTS[part]) == {}
    rounds.close()
    inside.analyse()
    assert inside.state.recording.ids == before.ids
    for layer in range(3):
        expected = trace_of(document).layers[layer].attn_weights[0]
        np.testing.assert_allclose(inside.state.recording.attn_weights(layer), expected, atol=1e-5)


def test_overwritten_results_are_dropped_first(document: Generation, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, seen, plain = Inside(document), [], Recording.extended

    def look(self: Recording, ids: tuple[int, ...]) -> Recording:
        seen.append(inside.state.recording.ids)
        return plain(self, ids)

    monkeypatch.setattr(Recording, "extended", look)
    with inside.session.changing():
        document.append(7, after=3)
        document.read()
    inside.analyse()
    assert seen[0] == ()


def test_a_text_that_is_written_is_followed_at_intervals_that_a_selection_cuts_short(document: Generation) -> None:
    inside = Inside(document)
    inside.session.lock.begin()
    document.append(5)
    document.read()
    rounds = analysis.record(inside.session, 2**20)
    next(rounds)
    assert inside.state.recording.length == len(document.ids)
    inside.session.selection = LOOK
    assert list(rounds) == []


def test_a_long_pass_is_announced(document: Generation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "LONG_PASS_WORK", 0)
    inside = Inside(None)
    inside.session.document = document
    rounds = analysis.record(inside.session, 2**20)
    next(rounds)
    assert f"{document.n_read} tokens" in inside.shown("inside-notice")["text"]
    list(rounds)
    assert inside.shown("inside-notice")["text"] == ""


def test_a_text_too_long_for_its_memory_is_recorded_in_part_and_that_is_said(document: Generation) -> None:
    config = document.loaded.model.config
    inside = Inside(document, Selection(layer=1, head=0), max_bytes=3 * 4 * config.n_layer * config.n_embd * 10 + 5)
    content = inside.shown("flow")
    assert (content["selected"], content["total"]) == (9, 10)
    np.testing.assert_allclose(content["row"], trace_of(document).layers[1].attn_weights[0, 0, 9, :10], atol=1e-4)
    assert f"first 10 of {document.n_read} tokens" in inside.shown("inside-notice")["text"]
    assert Inside(document).shown("inside-notice")["text"] == ""


def test_there_are_never_two_recordings_and_none_outlives_its_session(document: Generation) -> None:
    inside = Inside(document, part="one_head")
    held = inside.state.n_bytes
    assert held > 3 * 4 * 3 * 36 * document.n_read
    assert inside.session.n_bytes >= held
    first = ref(inside.state.recording)
    inside.session.document = document.copy()
    inside.analyse()
    assert first() is None
    second = ref(inside.state.recording)
    inside.session.close()
    assert second() is None


def test_tokens_travel_as_data_and_hold_no_markup(document: Generation) -> None:
    for part, name in PARTS.items():
        inside = Inside(document, part=part)
        frame = inside.renderer.frame(inside.session)
        assert "<" not in frame
        assert frame.isascii()
        assert name in json.loads(frame)["views"]
    assert "<" in Inside(document, flow_rows=64).shown("flow")["tokens"]


@pytest.mark.parametrize("sent", [{"layer": 3}, {"head": -1}, {"position": 10**9}, {"layer": "1"}, {"head": True}, {}])
def test_a_selection_that_does_not_exist_changes_nothing(document: Generation, sent: dict[str, Any]) -> None:
    inside = Inside(document, LOOK)
    for handler in (handlers.select, handlers.select_pair, handlers.select_token, handlers.select_layer):
        handler(inside.session, sent)
        assert inside.session.selection == LOOK
    handlers.magnify_head(inside.session, sent)
    assert inside.state.closer is None


def test_a_selection_changes_what_it_names(document: Generation) -> None:
    session = Inside(document, LOOK).session
    handlers.select(session, {"layer": 2, "head": 0})
    assert session.selection == replace(LOOK, layer=2, head=0)
    handlers.select_token(session, {"index": 4})
    handlers.select_layer(session, {"x": 1})
    assert session.selection == replace(LOOK, position=4, layer=1, head=0)


def test_a_key_is_selected_with_its_query_and_left_with_it(document: Generation) -> None:
    inside = Inside(document, LOOK, part="one_head")
    handlers.select_pair(inside.session, {"position": 9, "key": 4})
    assert (inside.shown("stages")["query"], inside.shown("stages")["key"]) == (9, 4)
    handlers.select(inside.session, {"layer": 0})
    assert inside.shown("stages")["key"] == 4
    handlers.select(inside.session, {"position": 8})
    assert inside.state.key is None


def test_the_saved_file_holds_every_activation_of_the_text_or_of_its_end(
    document: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def saved() -> Trace:
        [*handlers.save_trace(inside.session)]
        return Trace.load(inside.session.state(DownloadState).kept["trace.npz"].path)

    inside, expected = Inside(document), trace_of(document)
    trace = saved()
    torch.testing.assert_close(trace.layers[2].resid_post, expected.layers[2].resid_post)
    torch.testing.assert_close(trace.layers[0].attn_weights, expected.layers[0].attn_weights)
    assert f"positions 0 to {document.n_read - 1}" in inside.shown("trace-said")["text"]
    monkeypatch.setattr(trace_file, "MAX_TRACE_BYTES", 1)
    trace, last = saved(), document.n_read - 1
    assert f"positions {last} to {last}" in inside.shown("trace-said")["text"]
    assert trace.layers[0].attn_weights.shape == (1, 3, 1, last + 1)
    inside.session.document = document_of(document.loaded.model, document.loaded.tokenizer, "the mat")
    assert inside.shown("trace-said")["text"] == ""
    inside.session.close()


def test_nothing_is_saved_without_a_text(document: Generation) -> None:
    with pytest.raises(ValueError, match="no text"):
        next(handlers.save_trace(Inside(None).session))


def test_views_of_the_newest_token_follow_it(document: Generation) -> None:
    for part, name in PARTS.items():
        inside = Inside(document, Selection(NEWEST, 1, 0), part=part)
        view = next(view for view in VIEWS if view.name == name)
        before = Reads(inside.session.snapshot())
        view.draw(before)
        inside.write(9)
        assert not is_same(before.seen, inside.session.snapshot())
        inside.session.document.undo()


def test_the_overview_of_a_long_text_comes_in_portions(document: Generation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "OVERVIEW_SECONDS", 0)
    for number in range(50):
        document.append(5 + number % 7)
    document.read()
    inside = Inside(None)
    inside.session.document = document
    next(analysis.record(inside.session, 2**20))
    overview: HeadOverview = inside.state.overview
    assert 0 < len(overview.ids) < document.n_read
    assert f"The rest of the {document.n_read} tokens are still being computed" in inside.shown("heads")["text"]
    inside.analyse()
    assert len(inside.state.overview.ids) == document.n_read
    assert "still being computed" not in inside.shown("heads")["text"]


def test_the_pause_during_generation_is_not_part_of_a_round(
    document: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, naps = Inside(document), list[float]()

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        inside.session.selection = replace(inside.session.selection, layer=len(naps))  # ends the pause

    monkeypatch.setattr(analysis.time, "sleep", sleep)
    inside.session.lock.begin()
    list(analysis.record(inside.session, 2**20))
    assert naps == []
    analysis.pause(inside.session)
    assert len(naps) == 1


def test_the_state_of_a_tab_holds_only_what_can_be_compared() -> None:
    assert InsideState() == InsideState()
