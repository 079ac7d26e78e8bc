"""The Inside tab follows the text and the selection, computes only the open part, and respects its memory limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from components.causes import reason_falls
from components.downloads import DownloadState
from components.render import compute
from components.state.example import example
from components.state.reads import Reads
from components.state.text import Selection
from components.tabs.inside import heads, path, tab
from components.tabs.inside.scene import Chosen, recorded, select
from components.tabs.inside.tab import select_in_path
from gpt import GPT, Generation, GPTConfig, Tokenizer, Trace, get_model
from tests.components.tabs.inside_session import Inside, document_of, trace_of
from tests.gpt.family_configs import randomized

PICTURES = {
    "path": "path",
    "numbers": "flow",
    "heads": "stages",
    "stream": "stream-tokens",
    "embeddings": "nearest-tokens",
}
LOOK = Selection(position=11, layer=1, head=2)


@pytest.fixture
def document(byte_tokenizer: Tokenizer) -> Generation:
    config = GPTConfig(vocab_size=byte_tokenizer.n_vocab, block_size=96, n_layer=3, n_head=3, n_embd=36)
    return document_of(randomized(GPT(config), 0.2).eval(), byte_tokenizer)


def diverge(inside: Inside) -> None:
    """Replace the text after its first tokens."""
    with inside.session.lock.changing():
        inside.session.document.append(7, after=3)
        inside.session.document.read()


@pytest.mark.parametrize("part", PICTURES)
def test_only_the_open_part_is_drawn_and_computed(document: Generation, part: str) -> None:
    inside = Inside(document, part=part)
    views, s = inside.drawn.update(), inside.session.snapshot()
    also = {"flow"} if part == "heads" else set()
    assert {name for name in PICTURES.values() if name in views} == {PICTURES[part]} | also
    assert (s[heads.overview] is not None) == (part == "heads")
    assert not inside.drawn.is_waiting


def test_nothing_is_computed_without_a_text(document: Generation) -> None:
    inside = Inside(None)
    assert "no text" in inside.shown("inside-notice")["text"].lower()
    assert inside.recording is None
    inside.session.document = Generation(document.loaded, "cat")  # not read yet
    assert not inside.drawn.is_waiting
    with pytest.raises(ValueError, match="no text"):
        next(tab.save_trace(Inside(None).session))


@pytest.mark.parametrize("part", ["numbers", "heads"])
def test_another_selection_runs_no_model(document: Generation, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = Inside(document, part=part)
    inside.drawn.update()
    monkeypatch.setattr(GPT, "hidden_states", lambda *_, **__: pytest.fail("the model ran"))
    for selection in (Selection(), Selection(position=0), replace(LOOK, layer=2), replace(LOOK, head=0)):
        inside.session.selection = selection
        shown = inside.drawn.update(compute=False)[PICTURES[part]]
        assert (shown["layer"], shown.get("waiting", False)) == (selection.layer, False)


def test_a_new_token_is_the_only_one_that_the_model_reads_and_pictures_wait_for_nothing(
    document: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, read, plain = Inside(document), [], GPT.hidden_states
    inside.drawn.update()

    def count(self: GPT, idx: torch.Tensor, **options: Any) -> torch.Tensor:
        if options.get("trace") is not None:
            read.append(idx.shape[1])
        return plain(self, idx, **options)

    monkeypatch.setattr(GPT, "hidden_states", count)
    inside.write(5)
    views = inside.drawn.update(compute=False)
    assert not any(views[name].get("waiting") for name in ("flow", "heads"))
    assert inside.shown("flow")["total"] == len(document.ids)
    assert read == [1]
    with inside.session.lock.changing():
        document.append(6, after=3)
        document.read()
    inside.drawn.update()
    assert read == [1, 1], "what the texts have in common is not read again"


@pytest.mark.parametrize("part", ["numbers", "heads", "stream"])
def test_no_picture_of_another_branch_is_drawn_while_it_is_overwritten(document: Generation, part: str) -> None:
    inside = Inside(document, part=part)
    before = inside.recording
    diverge(inside)
    assert inside.drawn.update(compute=False)[PICTURES[part]]["waiting"]
    for _ in compute(inside.session, recorded):
        pass
    with inside.session.lock.changing():
        document.undo()
        document.read()
    assert inside.drawn.update(compute=False)[PICTURES[part]]["waiting"], "overwritten"
    for _ in compute(inside.session, recorded):
        pass
    assert inside.recording.ids == before.ids
    for layer in range(3):
        expected = trace_of(document).layers[layer].attn_weights[0]
        np.testing.assert_allclose(inside.recording.attn_weights(layer), expected, atol=1e-5)


def test_a_text_too_long_for_its_memory_is_recorded_in_part_and_that_is_said(document: Generation) -> None:
    config = document.loaded.model.config
    inside = Inside(document, Selection(layer=1, head=0), max_bytes=3 * 4 * config.n_layer * config.n_embd * 10 + 5)
    content = inside.shown("flow")
    assert (content["selected"], content["total"]) == (9, 10)
    np.testing.assert_allclose(content["row"], trace_of(document).layers[1].attn_weights[0, 0, 9, :10], atol=1e-4)
    assert f"first 10 of {document.n_read} tokens" in inside.shown("inside-notice")["text"]


def test_a_key_is_selected_with_its_query_and_left_with_it(document: Generation) -> None:
    inside = Inside(document, LOOK, part="heads")
    inside.drawn.update()
    select(inside.session, {"position": 9, "key": 4})
    assert (inside.shown("stages")["query"], inside.shown("stages")["key"]) == (9, 4)
    select(inside.session, {"layer": 0})
    assert inside.shown("stages")["key"] == 4
    select(inside.session, {"position": 8})
    assert inside.session.state(Chosen).key is None


def test_the_saved_file_holds_every_activation_of_the_text_or_of_its_end(
    document: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def saved() -> Trace:
        [*tab.save_trace(inside.session)]
        return Trace.load(inside.session.state(DownloadState).kept["trace.npz"].path)

    inside, expected = Inside(document), trace_of(document)
    trace = saved()
    torch.testing.assert_close(trace.layers[2].resid_post, expected.layers[2].resid_post)
    torch.testing.assert_close(trace.layers[0].attn_weights, expected.layers[0].attn_weights)
    assert f"positions 0 to {document.n_read - 1}" in inside.shown("trace-said")["text"]
    monkeypatch.setattr(tab, "MAX_TRACE_BYTES", 1)
    trace, last = saved(), document.n_read - 1
    assert f"positions {last} to {last}" in inside.shown("trace-said")["text"]
    assert trace.layers[0].attn_weights.shape == (1, 3, 1, last + 1)
    inside.session.document = document_of(document.loaded.model, document.loaded.tokenizer, "the mat")
    assert inside.shown("trace-said")["text"] == ""
    inside.session.close()


def test_the_path_names_the_word_the_head_and_the_token_of_the_measured_causes() -> None:
    inside = Inside(example(get_model()).copy(), part="path")
    inside.drawn.update()
    s = Reads(inside.session.snapshot())
    shown, falls = inside.shown("path"), reason_falls(s)
    (word,) = [word for word in shown["words"] if word["without"] is not None]
    assert (word["text"], word["without"]) == ("raining", falls.words[0].probability)
    assert shown["head"] == [*falls.heads[0].place, falls.heads[0].probability]
    assert shown["writer"] >= shown["head"][0]
    assert shown["next"][0] == ["outside", pytest.approx(falls.probability, abs=1e-3)]
    said = inside.shown("path-says")["text"]
    assert "“raining” is the main reason" in said
    assert f"Layer {shown['head'][0]}, attention head {shown['head'][1]} looks back from “play”" in said
    select_in_path(inside.session, {"layer": 2, "head": 1})
    state = inside.session.snapshot()
    assert (state.selection.layer, state.selection.head, state.state(Chosen).step) == (2, 1, "numbers")


def test_the_word_that_decides_is_found_after_words_of_several_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "main_word", lambda falls, *_: max(falls.words, key=lambda fall: fall.place))
    inside = Inside(example(get_model()).copy(), part="path")
    inside.drawn.update()
    last = max(reason_falls(Reads(inside.session.snapshot())).words, key=lambda fall: fall.place)
    assert last.place[0] > 4, "after “raining”, two tokens"
    assert [word["without"] for word in inside.shown("path")["words"] if word["without"]] == [last.probability]


def test_if_no_single_word_decides_a_thread_leads_from_each_word_that_counts() -> None:
    inside = Inside(example(get_model("untrained")).copy(), part="path")
    inside.drawn.update()
    shown = inside.shown("path")
    assert shown["together"]
    assert "No single word decides it" in inside.shown("path-says")["text"]
    assert sum(word["share"] > 0 for word in shown["words"]) > 1
