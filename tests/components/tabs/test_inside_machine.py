"""The flow: every number is the model's own, compared with a full trace."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from components.state.text import Selection
from components.tabs.inside import machine
from components.tabs.inside.recording import BINS, RECORDED, WIDE_BINS, Recording, pool_mean
from components.tabs.inside.scene import FLOW_ROWS
from components.widgets.flow import PARTS
from gpt import Generation, Tokenizer
from gpt.layers import ACTIVATIONS
from tests.components.tabs.inside_session import MODELS, Inside, random_document, trace_of, unpacked

LOOK = Selection(position=11, layer=1, head=2)
ALL = FLOW_ROWS[1]  # rows of the flow that cover the whole text
TEMPERATURE = 0.8  # the default


@pytest.fixture(params=MODELS)
def document(request: pytest.FixtureRequest, byte_tokenizer: Tokenizer) -> Generation:
    return random_document(request.param, byte_tokenizer)


def values_of(strip: dict[str, Any], rows: int) -> np.ndarray:
    return (unpacked(strip["data"], "u1", rows, strip["bins"]) / 127.5 - 1) * float(strip["scale"])


def assert_strip(strip: dict[str, Any], vectors: np.ndarray) -> None:
    """Assert that a strip shows these vectors, up to its colour resolution."""
    pooled, scale = pool_mean(vectors, min(BINS, vectors.shape[1])), float(strip["scale"])
    assert strip["width"] == vectors.shape[1]
    assert scale == pytest.approx(np.percentile(np.abs(pooled), machine.FULL_PERCENTILE), rel=0.006)
    shown = values_of(strip, len(vectors))
    np.testing.assert_allclose(shown, pooled.clip(-scale, scale), atol=scale / 255 + 1e-6)


def test_every_strip_is_the_pooled_vector_of_a_whole_trace(document: Generation) -> None:
    trace, strips = trace_of(document), Inside(document, LOOK, flow_rows=ALL).shown("flow")["strips"]
    layer, config = trace.layers[LOOK.layer], document.loaded.model.config
    kv_head = LOOK.head // (config.n_head // config.kv_heads)
    vectors = {
        "tok": trace.token_embedding[0],
        "pre": layer.resid_pre[0],
        "q": layer.attn_q[0, LOOK.head],
        "k": layer.attn_k[0, kv_head],
        "v": layer.attn_v[0, kv_head],
        "z": layer.attn_weights[0, LOOK.head] @ layer.attn_v[0, kv_head],
        "att": layer.attn_out[0],
        "out": layer.mlp_out[0],
        "post": layer.resid_post[0],
        "fin": trace.final_norm[0],
    }
    if document.loaded.model.wpe is not None:
        vectors["pos"] = trace.position_embedding.reshape(-1, 36)
    if not config.parallel:  # parallel models do not use it
        vectors["mid"] = layer.resid_mid[0]
    assert set(strips) == {*vectors, "ff"} | ({"gate", "up"} if config.gated else set())
    for name, vector in vectors.items():
        assert_strip(strips[name], vector.numpy())


def test_neurons_show_the_strongest_of_each_group(document: Generation) -> None:
    recording, config = Inside(document).recording, document.loaded.model.config
    layer = trace_of(document).layers[1]
    pre, post = layer.mlp_pre[0].numpy(), layer.mlp_post[0].numpy()  # (T, 144): groups of 3
    shown, rows = {"mlp_post": post}, np.arange(len(post))
    if config.gated:
        shown |= {
            "mlp_gate": ACTIVATIONS[config.activation](layer.mlp_pre)[0].numpy(),
            "mlp_up": layer.mlp_up[0].numpy(),
        }
        np.testing.assert_allclose(shown["mlp_gate"] * shown["mlp_up"], post, atol=1e-5)
    for name, vectors in shown.items():
        groups = vectors.reshape(len(vectors), WIDE_BINS, 3)
        expected = np.take_along_axis(groups, np.abs(groups).argmax(axis=2)[..., None], axis=2)[..., 0]
        np.testing.assert_allclose(recording.pooled(1, name).values, expected, atol=1e-5, rtol=1e-5)
    strongest = np.abs(post).argmax(axis=1) if config.gated else post.argmax(axis=1)
    found = [recording.neurons(1, int(row)) for row in rows]
    assert [each["strongest"] for each in found] == strongest.tolist()
    assert [each["active"] for each in found] == ((pre if config.gated else post) > 0).sum(axis=1).tolist()
    np.testing.assert_allclose([each["post"] for each in found], post[rows, strongest], atol=1e-5, rtol=1e-5)


def test_weights_scores_and_next_tokens_are_the_model_s(document: Generation) -> None:
    layer, content = trace_of(document).layers[LOOK.layer], Inside(document, LOOK, flow_rows=ALL).shown("flow")
    weights = layer.attn_weights[0, LOOK.head].numpy()
    np.testing.assert_allclose(content["row"], weights[LOOK.position], rtol=1e-3, atol=1e-6)
    scores = layer.attn_scores[0, LOOK.head].numpy()[LOOK.position]
    np.testing.assert_allclose(content["scores"], scores, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(unpacked(content["weights"], "u1", *weights.shape) / 255, weights, atol=0.5 / 255 + 1e-6)
    with torch.inference_mode():
        logits = document.loaded.model(torch.tensor([document.ids]))[0, LOOK.position]
    p = (logits / TEMPERATURE).softmax(0).numpy()
    assert [share for _, share in content["next"]] == pytest.approx(sorted(p, reverse=True)[:8], rel=1e-3)


def test_a_recording_that_grew_with_the_text_equals_one_made_at_the_end(document: Generation) -> None:
    inside = Inside(document)
    for token_id in (5, 6, 7):
        inside.write(token_id)
        inside.drawn.update()
    grown, whole = inside.recording, Recording.empty(document).extended(tuple(document.ids))
    for place in [(None, "final_norm"), *((layer, name) for layer in range(3) for name in RECORDED)]:
        first, second = grown.pooled(*place), whole.pooled(*place)
        for numbers in ("values", "norm", "mean", "std"):
            np.testing.assert_allclose(getattr(first, numbers), getattr(second, numbers), atol=2e-4)
    np.testing.assert_allclose(grown.attn_weights(2), whole.attn_weights(2), atol=1e-5)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_part_has_three_lines(document: Generation, language: str) -> None:
    inside = Inside(document, LOOK)
    inside.session.language = language
    captions = inside.shown("flow")["words"]
    assert all(text.count("\n") == 2 for text in captions.values())
    config = document.loaded.model.config
    missing = {
        "pos": config.position != "learned",
        "gate": not config.gated,
        "up": not config.gated,
        "after1": not config.post_norm,
        "after2": not config.post_norm,
        "plus1": config.parallel,
        "mid": config.parallel,
    }
    assert list(captions) == [part for part in PARTS if part != "stack" and not missing.get(part)]
    assert not re.search(r"[{}]|nan|None", " ".join(captions.values()))
    text = inside.shown("flow-family")["text"]
    assert bool(text) == (config.position == "rotary")
    assert not re.search(r"[{}]|nan|None", text)


def test_captions_tell_which_norms_caps_and_rotations_the_model_has(document: Generation) -> None:
    inside, config = Inside(document, LOOK), document.loaded.model.config
    shown, family = inside.shown("flow"), inside.shown("flow-family")["text"]
    words = shown["words"]
    assert shown["has_pre_norm"] == config.pre_norm
    for part in ("norm1", "norm2"):
        assert ("no norm" in words[part]) == ("are not normalised" in family) == (not config.pre_norm)
    if config.post_norm:
        assert ("second norm" in words["after1"]) == ("second norm" in words["after2"]) == config.pre_norm
    assert ("0.8 · tanh(q · k / √12 / 0.8)" in words["weights"]) == (config.attn_softcap is not None)
    assert ("scores stay between −0.8 and 0.8" in family) == (config.attn_softcap is not None)
    assert ("logits stay between −2.5 and 2.5" in family) == (config.logit_softcap is not None)
    turns = config.position == "rotary" and LOOK.layer not in config.unrotated_layers
    assert shown["is_rotary"] == ("rotated" in words["q"]) == ("rotated" in words["k"]) == turns
    assert ("layer 1 does not rotate" in family) == (LOOK.layer in config.unrotated_layers)
