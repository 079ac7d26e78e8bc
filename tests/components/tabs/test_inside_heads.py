"""One head in stages, and the overview of all heads, compared with transformers and a full trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from components.state.text import Selection
from components.tabs.inside.heads import BLOCK, SIDE, overview
from gpt import Generation, GPTConfig, Tokenizer
from gpt.model import GPT
from tests.components.tabs.inside_session import MODELS, Inside, document_of, random_document, trace_of, unpacked
from tests.conftest import make_twins
from tests.gpt.family_configs import randomized

LAYER, HEAD, POSITION = 1, 2, 11


def one_head(document: Generation, position: int = POSITION, **state: Any) -> Inside:
    return Inside(document, Selection(position, LAYER, HEAD), part="heads", **state)


def vectors(packed: dict[str, Any], width: int) -> np.ndarray:
    return unpacked(packed["data"], "<i2", -1, width) / 32767 * packed["scale"]


@pytest.fixture
def twins(byte_tokenizer: Tokenizer) -> tuple[Any, Generation]:
    """Return transformers' attention weights and our document for the same text and weights."""
    reference, ours = make_twins(vocab_size=byte_tokenizer.n_vocab, n_positions=64, n_layer=3, n_head=3, n_embd=36)
    document = document_of(ours, byte_tokenizer)
    with torch.inference_mode():
        out = reference(torch.tensor([document.ids]), output_attentions=True)
    return [attention[0].numpy() for attention in out.attentions], document


@pytest.fixture
def long(byte_tokenizer: Tokenizer) -> Generation:
    config = GPTConfig(vocab_size=byte_tokenizer.n_vocab, block_size=256, n_layer=2, n_head=3, n_embd=12)
    return document_of(randomized(GPT(config), 0.2).eval(), byte_tokenizer, "a cat " * 40)


def test_weights_are_those_of_transformers_and_scores_those_of_a_trace(twins: tuple[Any, Generation]) -> None:
    attentions, document = twins
    content, trace = one_head(document).shown("stages"), trace_of(document).layers[LAYER]
    n, hs = len(document.ids), 12
    np.testing.assert_allclose(unpacked(content["weights"], "<f4", n, n), attentions[LAYER][HEAD], atol=1e-5)
    np.testing.assert_allclose(unpacked(content["scaled"], "<f4", n, n), trace.attn_scores[0, HEAD], atol=1e-5)
    for name in "qkv":
        expected = getattr(trace, f"attn_{name}")[0, HEAD].numpy()
        np.testing.assert_allclose(vectors(content[name], hs), expected, atol=4e-5 * np.abs(expected).max())
    z = attentions[LAYER][HEAD] @ trace.attn_v[0, HEAD].numpy()
    np.testing.assert_allclose(vectors(content["z"], hs), z, atol=4e-5 * np.abs(z).max() + 1e-5)


def test_a_long_text_sends_a_window_and_says_what_is_outside(long: Generation) -> None:
    inside = one_head(long, 230, key=10)
    content, traced = inside.shown("stages"), trace_of(long).layers[LAYER].attn_weights[0, HEAD].numpy()
    queries, keys = (slice(content[side]["start"], content[side]["start"] + SIDE) for side in ("queries", "keys"))
    np.testing.assert_allclose(unpacked(content["weights"], "<f4", SIDE, SIDE), traced[queries, keys], atol=1e-5)
    assert f"keys {keys.start} to {keys.stop - 1}" in content["text"]
    assert f"{100 * (1 - traced[230, keys].sum()):.0f}% of this attention" in content["text"]
    side = content["map"]["side"]
    assert unpacked(content["map"]["levels"], "u1", side, side).shape < (100, 100)


@pytest.fixture(params=MODELS)
def document(request: pytest.FixtureRequest, byte_tokenizer: Tokenizer) -> Generation:
    return random_document(request.param, byte_tokenizer)


def pictures(inside: Inside) -> np.ndarray:
    """Assemble the overview like the browser, (n_layer, n_head, side, side)."""
    content = inside.shown("heads")
    shape, side = (content["n_layer"], content["n_head"]), len(content["rows"])
    made = np.zeros((*shape, side, side), np.uint8)
    for row, text in enumerate(content["rows"]):
        made[:, :, row, : row + 1] = unpacked(text, "u1", *shape, row + 1)
    return made


def expected_pictures(document: Generation, side: int) -> np.ndarray:
    """Return the maximum weights of every head from a full trace."""
    weights = np.stack([layer.attn_weights[0].numpy() for layer in trace_of(document).layers])
    factor = -(-weights.shape[-1] // side)
    room = np.zeros((*weights.shape[:2], side * factor, side * factor), np.float32)
    room[..., : weights.shape[-1], : weights.shape[-1]] = weights
    return np.round(255 * room.reshape(*weights.shape[:2], side, factor, side, factor).max(axis=(3, 5)))


def test_an_overview_that_grew_with_the_text_is_that_of_a_whole_trace(document: Generation) -> None:
    inside = Inside(document)
    for count in (0, 1, 1, 30, 40, 1, 20, 6):
        inside.write(*(5 + number % 7 for number in range(count)))
        shown = pictures(inside)
        assert np.abs(shown - expected_pictures(document, shown.shape[-1])).max() <= 1  # rounding
    assert len(document.ids) > 2 * BLOCK
    found = inside.session.snapshot()[overview]
    assert found.factor > 1
    shares = found.shares
    for layer, traced in enumerate(trace_of(document).layers):
        weights = traced.attn_weights[0].numpy()
        columns = (weights[:, 1:, 0], np.diagonal(weights, -1, 1, 2), np.diagonal(weights, 0, 1, 2))
        for column, values in enumerate(columns):
            np.testing.assert_allclose(shares[layer, :, column], values.mean(axis=1), atol=1e-5)
