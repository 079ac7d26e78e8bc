"""One head in stages and the attention between tokens, compared with transformers and a full trace."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from components.state.selection import Selection
from components.tabs.inside import handlers
from components.tabs.inside.recording import Recording
from components.tabs.inside.views.head_stages import SIDE, window_starts
from gpt import Generation, GPTConfig, Tokenizer
from gpt.analysis.heads import value_weighted
from gpt.course.learner import open_broken
from gpt.course.reference import Reference
from gpt.model import GPT
from tests.components.tabs.inside_session import Inside, document_of, random_document, trace_of, unpacked
from tests.conftest import make_twins, randomized

LAYER, HEAD, POSITION = 1, 2, 11


def one_head(document: Generation, position: int = POSITION, **state: Any) -> Inside:
    return Inside(document, Selection(position, LAYER, HEAD), part="one_head", **state)


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


def test_the_numbers_of_a_cell_follow_from_each_other(twins: tuple[Any, Generation]) -> None:
    content = one_head(twins[1]).shown("stages")
    n, hs = len(twins[1].ids), 12
    q, k = vectors(content["q"], hs), vectors(content["k"], hs)
    scores, weights = (unpacked(content[name], "<f4", n, n) for name in ("scaled", "weights"))
    sums = unpacked(content["sums"], "<f4", n)
    np.testing.assert_allclose(q @ k.T / math.sqrt(hs), scores, atol=1e-3 * np.abs(scores).max())
    causal = np.tril(np.ones((n, n), bool))
    np.testing.assert_allclose(np.exp(scores - sums[:, None])[causal], weights[causal], atol=1e-5)
    assert not weights[~causal].any()


def test_scores_before_their_cap_are_sent_with_it(byte_tokenizer: Tokenizer) -> None:
    document = random_document("gemma2", byte_tokenizer)
    content, scores = one_head(document).shown("stages"), trace_of(document).layers[LAYER].attn_scores[0, HEAD].numpy()
    assert content["cap"] == document.loaded.model.config.attn_softcap
    scaled, sums = unpacked(content["scaled"], "<f4", *scores.shape), unpacked(content["sums"], "<f4", len(scores))
    np.testing.assert_allclose(content["cap"] * np.tanh(scaled / content["cap"]), scores, atol=1e-5)
    assert np.abs(scaled).max() > content["cap"]
    weights = unpacked(content["weights"], "<f4", *scores.shape)
    seen = np.tril(np.ones(scores.shape, bool))
    np.testing.assert_allclose(np.exp(scores - sums[:, None])[seen], weights[seen], atol=1e-5)


def test_the_selected_pair_is_always_among_what_is_shown() -> None:
    generator = np.random.default_rng(0)
    for _ in range(300):
        length, before = int(generator.integers(1, 1025)), None
        for _ in range(4):
            position = int(generator.integers(length))
            key = None if generator.random() < 0.3 else int(generator.integers(position + 1))
            query_start, key_start = before = window_starts(length, position, key, before)
            n = min(length, SIDE)
            assert 0 <= query_start <= position < query_start + n <= length
            assert 0 <= key_start <= length - n
            assert key is None or key_start <= key < key_start + n


def test_a_selection_inside_what_is_shown_moves_nothing(long: Generation) -> None:
    before = window_starts(1000, 700, 30, None)
    assert window_starts(1000, before[0] + 3, before[1] + 60, before) == before
    assert window_starts(1000, before[0] + 3, None, before) == before
    assert window_starts(1000, 20, None, before) != before
    inside = one_head(long, 150)
    shown = inside.shown("stages")
    inside.select(position=200, layer=LAYER, head=HEAD)  # in another tab
    shown = inside.shown("stages")
    for position, key in ((shown["queries"]["start"], None), (205, 150)):
        handlers.select_pair(inside.session, {"position": position, **({} if key is None else {"key": key})})
        assert inside.shown("stages")["query"] == position
        assert [inside.shown("stages")[side] for side in ("queries", "keys")] == [shown["queries"], shown["keys"]]


def test_a_long_text_sends_a_window_and_says_what_is_outside(long: Generation) -> None:
    inside = one_head(long, 230, key=10)
    content, traced = inside.shown("stages"), trace_of(long).layers[LAYER].attn_weights[0, HEAD].numpy()
    queries, keys = (slice(content[side]["start"], content[side]["start"] + SIDE) for side in ("queries", "keys"))
    np.testing.assert_allclose(unpacked(content["weights"], "<f4", SIDE, SIDE), traced[queries, keys], atol=1e-5)
    assert f"keys {keys.start} to {keys.stop - 1}" in content["text"]
    assert f"{100 * (1 - traced[230, keys].sum()):.0f}% of this attention" in content["text"]
    side = content["map"]["side"]
    assert unpacked(content["map"]["levels"], "u1", side, side).shape < (100, 100)


def test_a_stored_trace_is_that_of_a_whole_pass(twins: tuple[Any, Generation]) -> None:
    document = twins[1]
    recording, whole = Recording.empty(document).extended(tuple(document.ids)), trace_of(document)
    for stored, traced in zip(recording.attention_trace().layers, whole.layers, strict=True):
        np.testing.assert_allclose(stored.attn_weights, traced.attn_weights, atol=1e-5)
        np.testing.assert_allclose(stored.attn_v, traced.attn_v, atol=1e-6)
    model = document.loaded.model
    torch.testing.assert_close(
        value_weighted(model, recording.attention_trace(), 1), value_weighted(model, whole, 1), atol=1e-5, rtol=1e-5
    )


def test_a_program_without_a_mask_is_drawn_with_the_weights_of_later_tokens() -> None:
    reference = Reference()
    document = Generation(open_broken("no-mask", reference), reference.idx[0].tolist())
    document.read()
    inside, n = one_head(document, 2), len(document.ids)
    content = inside.shown("stages")
    weights, scaled = (unpacked(content[name], "<f4", n, n) for name in ("weights", "scaled"))
    assert content["ahead"]
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(np.exp(scaled - unpacked(content["sums"], "<f4", n, 1)), weights, atol=1e-4)
    assert content["variants"] == ["ahead"]
    machine = Inside(document, Selection(layer=0, head=0)).shown("flow")
    assert machine["ahead"]
