"""The residual stream, the neurons and the embeddings show what the model computed."""

from __future__ import annotations

import re
from operator import itemgetter

import numpy as np
import pytest
import torch

from components.state.text import Selection
from components.tabs.inside import stream
from components.tabs.inside.scene import traced
from gpt import Edits, Generation, Trace, get_model
from gpt.analysis import strongest_examples
from gpt.edits import Steering
from tests.components.tabs.inside_session import Inside, trace_of, unpacked
from tests.gpt.fake_models import family_model

TEXT = "The dog ran to the park with"
STEERING = (Steering(2, torch.linspace(-1, 1, 192)),)


EDITED = Edits(head_scale={(0, 1): 0.0}, activation="relu", steering=STEERING)


@pytest.fixture(
    scope="module",
    params=[pytest.param(None, id="plain"), pytest.param(EDITED, id="edited", marks=pytest.mark.thorough)],
)
def document(request: pytest.FixtureRequest) -> Generation:
    document = Generation(get_model(), TEXT, edits=request.param)
    document.read()
    return document


@pytest.fixture
def inside(document: Generation) -> Inside:
    return Inside(document, Selection(4, 2), part="stream")


@pytest.fixture(scope="module")
def trace(document: Generation) -> Trace:
    return trace_of(document)


def test_a_position_traced_alone_is_the_one_of_the_whole_pass(inside: Inside, trace: Trace) -> None:
    recording = inside.recording
    before, one = recording.head(1, 0).weights.copy(), inside.session.snapshot()[traced]
    for name in ("resid_pre", "attn_out", "resid_mid", "mlp_pre", "mlp_post", "mlp_out", "resid_post"):
        for layer, expected in zip(one.layers, trace.layers, strict=True):
            torch.testing.assert_close(getattr(layer, name)[0, 0], getattr(expected, name)[0, 4], atol=1e-4, rtol=1e-4)
    recording.trace_at(3)
    np.testing.assert_allclose(recording.head(1, 0).weights, before, atol=1e-5)


def test_the_charts_say_what_the_model_computed(inside: Inside, trace: Trace) -> None:
    assert f"{trace.layers[-1].resid_post[0, 4].norm():.2f}" in inside.shown("stream-norms")["text"]
    edited, shares = inside.session.document.edits is not None, inside.shown("stream-shares")
    assert len(shares["figure"]["data"]) == 3 + edited
    assert sum(map(int, re.findall(r"(\d+)%", shares["text"].replace("−", "-")))) == 100
    assert ("from your changes" in shares["text"]) == edited
    rows, post = inside.shown("neurons-table")["rows"], trace.layers[2].mlp_post[0, 4]
    assert len(rows) == 11
    for row in rows[1:]:
        assert float(row[2].replace("−", "-")) == pytest.approx(post[int(row[0])].item(), abs=0.0051)
    assert ("ReLU" if edited else "GELU") in inside.shown("neurons")["text"]


def test_a_neurons_snippets_are_its_strongest_examples_in_the_bundled_texts(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = get_model()
    texts = stream.texts_for(loaded)[:16]
    monkeypatch.setattr(stream, "texts_for", lambda loaded: texts)
    inside.session.select(layer=4)
    for neuron in (int(inside.shown("neurons-table")["rows"][1][0]), 112):
        found = strongest_examples(loaded, "layers.4.mlp_post", neuron, texts, stream.N_SNIPPETS)
        strongest = [max(words, key=itemgetter(1)) for words in inside.shown("neurons-examples")["snippets"]]
        for (word, level), each in zip(strongest, found, strict=True):
            assert word.strip() == loaded.tokenizer.decode([each.ids[each.position]]).strip()
            assert level == pytest.approx(each.value / found[0].value, abs=1e-3)
        assert f"neuron {neuron} of layer 4" in inside.shown("neurons-examples-says")["text"]
        stream.choose_neuron(inside.session, 112)
    with pytest.raises(ValueError, match="767"):
        stream.choose_neuron(inside.session, 768)
    stream.choose_bar(inside.session, {"x": 3})
    assert inside.session.state(stream.Chosen).neuron == (4, int(inside.shown("neurons-table")["rows"][4][0]))


def test_the_neurons_of_a_gated_model_have_their_gate_and_its_factor() -> None:
    document = Generation(family_model("llama"), "the cat sat")
    document.read()
    inside = Inside(document, Selection(4, 2), part="stream")
    layer = trace_of(document).layers[2]
    columns = [values[0, 4] for values in (layer.mlp_pre, layer.mlp_up, layer.mlp_post)]
    (_, _, factor, *_), *rows = inside.shown("neurons-table")["rows"]
    assert factor == "× c_fc"
    for row in rows:
        numbers = [float(cell.replace("−", "-")) for cell in row[1:4]]
        assert numbers == pytest.approx([values[int(row[0])].item() for values in columns], abs=0.0051)
    assert f"times {rows[0][2]}, gives {rows[0][3]}" in inside.shown("neurons")["text"]


def test_the_strip_is_shaded_by_the_norm_of_each_vector_after_the_layer(inside: Inside, trace: Trace) -> None:
    norms = trace.layers[2].resid_post[0].norm(dim=-1).numpy()
    shown = inside.shown("stream-tokens")
    largest, levels = shown["shade"].split(":")
    assert float(largest) == 1
    np.testing.assert_allclose(unpacked(levels, "<u2", -1) / 65535, norms / norms.max(), atol=1e-5)
    assert shown["selected"] == 4
    assert len(shown["lines"]) == len(norms)
    text = inside.shown("stream-tokens-says")["text"]
    assert f"({norms.max():.1f})" in text


def test_the_nearest_tokens_and_positions_are_those_of_the_embeddings(document: Generation) -> None:
    inside = Inside(document, Selection(4, 2), part="embeddings")
    wte = torch.nn.functional.normalize(document.loaded.model.wte.weight.detach(), dim=1)
    nearest = (wte @ wte[document.ids[4]]).topk(2).values[1]
    assert f"{nearest:.2f}" in inside.shown("nearest-tokens")["text"]
    wpe = torch.nn.functional.normalize(document.loaded.model.wpe.weight.detach(), dim=1)
    assert f"{(wpe[1:] * wpe[:-1]).sum(1).mean():.2f}" in inside.shown("position-similarity")["text"]
    assert inside.shown("no-positions")["text"] == ""
