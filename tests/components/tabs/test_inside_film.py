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
from components.tabs.inside.handlers import leave_film, open_film, show_beat
from components.tabs.inside.state import InsideState
from components.tabs.inside.views.film import VIEWS
from components.tabs.inside.views.film_beats import BEATS
from gpt import Edits, SamplingParams, Tokenizer, Trace, distribution
from tests.components.tabs.inside_session import RANDOM_MODELS, Inside, document_of, random_document, trace_of
from tests.conftest import make_twins

LAYER, HEAD = 1, 2


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
@pytest.mark.parametrize("name", RANDOM_MODELS)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_every_sentence_is_complete(language: Any, name: str, temperature: float, byte_tokenizer: Tokenizer) -> None:
    inside = Inside(random_document(name, byte_tokenizer), Selection(position=2, layer=0, head=HEAD))
    inside.session.language = language
    inside.session.settings = replace(inside.session.settings, temperature=temperature)
    for layer in (0, 2):
        inside.select(position=11, layer=layer, head=HEAD)
        shown = filmed(inside)
        config, names = inside.session.document.loaded.model.config, [beat["name"] for beat in shown["beats"]]
        assert ("pos" in shown["vectors"]) == (config.position == "learned")
        texts = [shown["labels"][end] for beat in names for end in (beat, f"{beat}.title")]
        assert all(texts)
        assert not [text for text in texts if re.search(r"[{}]|None|nan", text)]
        assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("name", [name for name in RANDOM_MODELS if name not in ("learned", "untied")])
def test_the_film_of_another_family_shows_what_it_has(name: str, byte_tokenizer: Tokenizer) -> None:
    document = random_document(name, byte_tokenizer)
    inside = Inside(document, Selection(position=11, layer=LAYER, head=HEAD))
    shown, config, layer = filmed(inside), document.loaded.model.config, trace_of(document).layers[LAYER]
    rows, kv_head, vectors = slice(6, 12), HEAD // (config.n_head // config.kv_heads), shown["vectors"]
    np.testing.assert_allclose(shown["weights"], layer.attn_weights[0, HEAD, rows, rows].numpy(), atol=1e-4)
    np.testing.assert_allclose(shown["scores"], layer.attn_scores[0, HEAD, rows, rows].numpy(), atol=6e-3)
    for head, cells in enumerate(vectors["heads"]):
        value = layer.attn_v[0, head // (config.n_head // config.kv_heads)]
        same_up_to_scale(cells, (layer.attn_weights[0, head, 11] @ value).numpy())
    for cells, key in zip(vectors["k"], layer.attn_k[0, kv_head, rows], strict=True):
        same_up_to_scale(cells, key.numpy())
    unrotated = Trace()  # without positions, queries and keys of layer 0 are those before the rotation
    document.loaded.model(torch.tensor([document.ids]), trace=unrotated, edits=Edits(drop_positions=True))
    inside.select(position=11, layer=0, head=HEAD)
    first = filmed(inside)
    for cells, query in zip(first["vectors"]["q0"], unrotated.layers[0].attn_q[0, HEAD, rows], strict=True):
        same_up_to_scale(cells, query.numpy())
    for side in "qk":
        turned = [after - before for before, after in first["turns"][side]]
        np.testing.assert_allclose(np.cos(turned), np.cos(np.arange(6, 12)), atol=3e-3)  # by 1 radian a position
    assert ("gate" in vectors) == config.gated
    if config.gated:
        assert shown["labels"]["gate"]
    assert ("mid" not in vectors) == ("added" in vectors) == config.parallel
    assert shown["window"] == config.window


def test_the_film_tells_of_caps_of_norms_that_are_missing_and_of_layers_without_rotation(
    byte_tokenizer: Tokenizer,
) -> None:
    def told(name: str) -> dict[str, str]:
        labels = filmed(Inside(random_document(name, byte_tokenizer), Selection(position=11, layer=2, head=HEAD)))[
            "labels"
        ]
        return {beat: labels[beat] for beat in ("norm.title", "position", "scores", "logits")}

    capped, unnormed, unrotated, llama = (told(name) for name in ("gemma2", "olmo2", "smollm3", "llama"))
    assert capped["scores"].endswith("between −0.8 and 0.8: 0.8 · tanh(score / 0.8).")
    assert capped["logits"].endswith("between −2.5 and 2.5.")
    assert unnormed["norm.title"] == "No norm before the layer"
    assert "layer 2 is one of those that do not turn" in unrotated["position"]
    assert "all heads are normalised together" in unnormed["position"]
    assert not re.search("tanh|between|do not turn|No norm|together", "".join(llama.values()))


@pytest.mark.parametrize("name", RANDOM_MODELS)
def test_every_part_that_a_beat_shows_has_its_numbers(name: str, byte_tokenizer: Tokenizer) -> None:
    shown = filmed(Inside(random_document(name, byte_tokenizer), Selection(position=11, layer=LAYER, head=HEAD)))
    drawn = {*shown["vectors"], "sentence", "ids", "matrix", "layers", "logits", "bars", "line"}
    for beat in shown["beats"]:
        assert {*beat["lit"], *beat["close"]} <= drawn, beat["name"]


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
