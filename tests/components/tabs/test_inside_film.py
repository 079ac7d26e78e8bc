"""The film: its numbers are those of the model, and its sentences are complete for every kind of model."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from components.i18n import LANGUAGES
from components.state.selection import Selection
from components.state.session import Session
from components.tabs.inside.components import InsideState
from components.tabs.inside.handlers import leave_film, open_film, show_beat
from components.tabs.inside.views.film import BEATS, VIEWS
from gpt import GPT, GPTConfig, SamplingParams, Tokenizer, distribution
from tests.components.tabs.inside_session import Inside, document_of, trace_of
from tests.conftest import make_twins

LAYER, HEAD = 1, 2
SIZE = {"block_size": 64, "n_layer": 3, "n_head": 3, "n_embd": 36}


def filmed(inside: Inside, beat: int = 1) -> dict[str, Any]:
    inside.session.film = beat
    inside.analyse()
    (view,) = VIEWS
    return view.draw(inside.session.snapshot())


@pytest.fixture
def inside(byte_tokenizer: Tokenizer) -> Inside:
    _, model = make_twins(vocab_size=byte_tokenizer.n_vocab, n_positions=64, n_layer=3, n_head=3, n_embd=36)
    return Inside(document_of(model, byte_tokenizer), Selection(position=11, layer=LAYER, head=HEAD))


def test_weights_scores_and_vectors_are_those_of_one_pass_over_the_whole_text(inside: Inside) -> None:
    shown, document = filmed(inside), inside.session.document
    layer = trace_of(document).layers[LAYER]
    rows = slice(6, 12)
    np.testing.assert_allclose(shown["weights"], layer.attn_weights[0, HEAD, rows, rows].numpy(), atol=1e-4)
    np.testing.assert_allclose(shown["scores"], layer.attn_scores[0, HEAD, rows, rows].numpy(), atol=6e-3)
    assert [token_id for _, token_id in shown["tokens"]] == list(document.ids[rows])
    assert shown["earlier"] == 6
    assert {len(shown["vectors"][name]) for name in ("tok", "pos", "x", "pre", "norm", "q", "k", "v")} == {6}
    for head, cells in enumerate(shown["vectors"]["heads"]):
        mixed = (layer.attn_weights[0, head, 11] @ layer.attn_v[0, head]).numpy()
        same_up_to_scale(cells, mixed)
    assert np.argmax(np.abs(shown["vectors"]["z"][0])) == np.argmax(np.abs(shown["vectors"]["heads"][HEAD]))


def same_up_to_scale(cells: list[float], values: np.ndarray) -> None:
    """Cells beyond the scale are cut to 1."""
    inner = np.abs(np.array(cells)) < 1
    i = int(np.abs(np.where(inner, cells, 0)).argmax())
    np.testing.assert_allclose(np.array(cells)[inner], values[inner] * cells[i] / values[i], atol=0.02)


def test_what_is_added_has_one_scale(inside: Inside) -> None:
    vectors = {name: np.array(rows) for name, rows in filmed(inside)["vectors"].items()}
    for total, parts in (("x", ("tok", "pos")), ("mid", ("base", "att"))):
        summed = sum(vectors[name] for name in parts)
        inner = np.abs(np.array([vectors[total], *(vectors[name] for name in parts)])).max(axis=0) < 1
        assert inner.mean() > 0.8
        np.testing.assert_allclose(summed[inner], vectors[total][inner], atol=0.02)


def test_the_draw_is_the_one_of_the_settings(inside: Inside) -> None:
    shown, document = filmed(inside), inside.session.document
    params = inside.session.settings.sampling()
    final = distribution(document.logits(11), SamplingParams(temperature=params.temperature)).final
    start, end = shown["bounds"]
    assert start <= shown["number"] < end
    assert shown["next"][shown["chosen"]]["final"] == pytest.approx(end - start, rel=1e-3)
    best = int(final.argmax())
    assert shown["next"][0]["final"] == pytest.approx(float(final[best]), rel=1e-3)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("position", ["learned", "rotary"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_every_sentence_is_complete(
    language: Any, position: Any, temperature: float, byte_tokenizer: Tokenizer
) -> None:
    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=byte_tokenizer.n_vocab, position=position, **SIZE)).eval()
    inside = Inside(document_of(model, byte_tokenizer), Selection(position=2, layer=0, head=HEAD))
    inside.session.language = language
    inside.session.settings = replace(inside.session.settings, temperature=temperature)
    shown = filmed(inside)
    assert ("pos" in shown["vectors"]) == (position == "learned")
    texts = [shown["labels"][beat.name] for beat in BEATS] + [shown["labels"][f"{beat.name}.title"] for beat in BEATS]
    assert all(texts)
    assert not [text for text in texts if re.search(r"[{}]|None|nan", text)]


def test_opening_stepping_and_leaving(inside: Inside) -> None:
    session = inside.session
    session.tab = "playground"
    open_film(session)
    assert (session.tab, session.film) == ("inside", 1)
    for sent in ({"beat": 0}, {"beat": len(BEATS) + 1}, {"beat": "2"}, {"beat": True}, {}):
        show_beat(session, sent)
        assert session.film == 1
    names = [beat.name for beat in BEATS]
    leave_film(session, {"beat": 1 + names.index("softmax"), "leave": True})
    assert (session.film, session.tab, session.state(InsideState).part) == (None, "inside", "one_head")
    open_film(session)
    leave_film(session, {"beat": 1 + names.index("draw"), "leave": True})
    assert (session.film, session.tab) == (None, "playground")
    show_beat(session, {"beat": 3})
    assert session.film is None
    with pytest.raises(ValueError, match="text"):
        open_film(Session(None))


def test_without_an_open_film_nothing_is_computed(inside: Inside) -> None:
    assert inside.session.state(InsideState).window_trace is None
    (view,) = VIEWS
    assert view.draw(inside.session.snapshot()) == {"beats": []}
