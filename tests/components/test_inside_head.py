"""One head: each stage is the model's own, against transformers and a whole trace; what travels is what is shown."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from components.state.selection import Selection
from components.tabs.inside.looks import OF_HEADS, VIEWS, looks, shares
from components.tabs.inside.part import Scene
from components.tabs.inside.record import Record
from components.tabs.inside.rollout import Rollout
from components.tabs.inside.stages import SIDE, stages, starts
from components.widgets.lines import FULL, seen_cells
from gpt import Generation, Trace
from gpt.analysis.rollout import rollout
from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.tokenizer import Tokenizer
from tests.components.test_inside import document_of, trace_of
from tests.conftest import make_twins, randomized

TEXT = "the <b>cat</b> sat there, on the\nmat"
LAYER, HEAD, POSITION = 1, 2, 11


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, nothing comes in parts."""
    monkeypatch.setattr("components.tabs.inside.looks.SECONDS", math.inf)


def scene_of(document: Generation, *, position: int = POSITION, key: int | None = None) -> Scene:
    record = Record(document)
    record.extend()
    return Scene(record, Selection(position, LAYER, HEAD), position, key, "en", {}, {})


@pytest.fixture
def twins(byte_tokenizer: Tokenizer) -> tuple[Any, Generation]:
    """transformers' attentions and our document of the same text on the same weights."""
    reference, ours = make_twins(vocab_size=byte_tokenizer.n_vocab, n_positions=64, n_layer=3, n_head=3, n_embd=36)
    document = document_of(ours, byte_tokenizer, TEXT)
    with torch.inference_mode():
        out = reference(torch.tensor([document.ids]), output_attentions=True)
    return [attention[0].numpy() for attention in out.attentions], document


def floats(text: str, *shape: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(shape)


def vectors(packed: dict[str, Any], width: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["data"]), "<i2").reshape(-1, width) / 32767 * packed["scale"]


def test_weights_are_those_of_transformers_and_scores_those_of_a_trace(twins: tuple[Any, Generation]) -> None:
    attentions, document = twins
    content, trace = json.loads(stages(scene_of(document))), trace_of(document).layers[LAYER]
    n, hs = len(document.ids), 12
    weights, scores = floats(content["weights"], n, n), floats(content["scores"], n, n)
    np.testing.assert_allclose(weights, attentions[LAYER][HEAD], atol=1e-5)
    np.testing.assert_allclose(scores, trace.attn_scores[0, HEAD].numpy(), atol=1e-5)
    for name in "qkv":
        expected = getattr(trace, f"attn_{name}")[0, HEAD].numpy()
        np.testing.assert_allclose(vectors(content[name], hs), expected, atol=4e-5 * np.abs(expected).max())
    z = attentions[LAYER][HEAD] @ trace.attn_v[0, HEAD].numpy()
    np.testing.assert_allclose(vectors(content["z"], hs), z, atol=4e-5 * np.abs(z).max() + 1e-5)


def test_the_numbers_of_a_cell_follow_from_each_other(twins: tuple[Any, Generation]) -> None:
    content = json.loads(stages(scene_of(twins[1])))
    n, hs = len(twins[1].ids), 12
    q, k = vectors(content["q"], hs), vectors(content["k"], hs)
    scores, weights, sums = (
        floats(content["scores"], n, n),
        floats(content["weights"], n, n),
        floats(content["sums"], n),
    )
    np.testing.assert_allclose(q @ k.T / math.sqrt(hs), scores, atol=1e-3 * np.abs(scores).max())
    seen = np.tril(np.ones((n, n), bool))
    np.testing.assert_allclose(np.exp(scores - sums[:, None])[seen], weights[seen], atol=1e-5)
    assert not weights[~seen].any()


def test_the_selected_pair_is_always_among_what_is_shown() -> None:
    generator = np.random.default_rng(0)
    for _ in range(300):
        length = int(generator.integers(1, 1025))
        before = None
        for _ in range(4):
            position = int(generator.integers(length))
            key = None if generator.random() < 0.3 else int(generator.integers(position + 1))
            query_start, key_start = before = starts(length, position, key, before)
            n = min(length, SIDE)
            assert 0 <= query_start <= position < query_start + n <= length
            assert 0 <= key_start <= length - n
            assert key is None or key_start <= key < key_start + n


def test_a_selection_inside_what_is_shown_moves_nothing() -> None:
    before = starts(1000, 700, 30, None)
    assert starts(1000, before[0] + 3, before[1] + 60, before) == before
    assert starts(1000, before[0] + 3, None, before) == before
    assert starts(1000, 20, None, before) != before


def test_a_long_text_sends_a_window_and_says_what_is_outside(byte_tokenizer: Tokenizer) -> None:
    config = GPTConfig(vocab_size=byte_tokenizer.n_vocab, block_size=256, n_layer=2, n_head=3, n_embd=12)
    document = document_of(randomized(GPT(config), 0.2).eval(), byte_tokenizer, "a cat " * 40)
    scene = scene_of(document, position=230, key=10)
    content = json.loads(stages(scene))
    n, traced = SIDE, trace_of(document).layers[LAYER].attn_weights[0, HEAD].numpy()
    queries, keys = (slice(content[side]["start"], content[side]["start"] + n) for side in ("queries", "keys"))
    np.testing.assert_allclose(floats(content["weights"], n, n), traced[queries, keys], atol=1e-5)
    share = 1 - traced[230, keys].sum()
    assert f"keys {keys.start} to {keys.stop - 1}" in content["text"]
    assert f"{100 * share:.0f}\u00a0% of this look" in content["text"]
    side = content["map"]["side"]
    assert len(base64.b64decode(content["map"]["levels"])) == side**2 < 100**2
    for view in VIEWS:
        lines = json.loads(looks(scene, view))
        assert lines["keys"] == content["keys"]
        levels = np.frombuffer(base64.b64decode(lines["data"]), "<u2").reshape(lines["pictures"], -1)
        whole = shares(scene, view)[:, queries, keys]
        seen = seen_cells(queries.start, keys.start, n, n)
        np.testing.assert_allclose(levels / FULL, whole[:, seen], atol=1 / FULL)


def test_a_rollout_goes_up_layer_by_layer(twins: tuple[Any, Generation]) -> None:
    record = scene_of(twins[1]).record
    made, flow = Rollout(record), rollout(record.trace())
    assert not made.extend(seconds=0)
    assert made.layers == 1
    assert made.extend()
    np.testing.assert_allclose(made.flow, flow, atol=1e-6)
    assert made.holds(record)
    assert not made.holds(Record(twins[1]))


def test_views_are_what_their_papers_say(twins: tuple[Any, Generation]) -> None:
    attentions, document = twins
    scene, n = scene_of(document), len(document.ids)
    views = {view: shares(scene, view) for view in VIEWS}
    np.testing.assert_allclose(views["weights"], attentions[LAYER], atol=1e-5)
    np.testing.assert_allclose(views["layer_mean"][0], attentions[LAYER].mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(views["mean"][0], np.mean(attentions, axis=(0, 1)), atol=1e-5)
    flow = np.eye(n)
    for weights in attentions:
        flow = (weights.mean(axis=0) + np.eye(n)) / 2 @ flow
    np.testing.assert_allclose(views["rollout"][0], flow, atol=1e-5)
    rest = attentions[LAYER][:, 1:, 1:]
    np.testing.assert_allclose(views["without_first"][:, 1:, 1:], rest / rest.sum(-1, keepdims=True), atol=1e-5)
    w = document.loaded.model.h[LAYER].attn.c_proj.weight.detach().numpy()
    v = trace_of(document).layers[LAYER].attn_v[0].numpy()
    for head in range(3):
        sent = np.linalg.norm(v[head] @ w[:, 12 * head : 12 * head + 12].T, axis=1)
        lengths = attentions[LAYER][head] * sent
        np.testing.assert_allclose(views["values"][head], lengths / lengths.sum(1, keepdims=True), atol=1e-5)
    for view, weights in views.items():
        assert len(weights) == (3 if view in OF_HEADS else 1)
        np.testing.assert_allclose(weights.sum(-1)[:, 1:], 1, atol=1e-5)


@pytest.mark.parametrize("view", VIEWS)
def test_lines_carry_every_weight_that_may_be_other_than_zero(twins: tuple[Any, Generation], view: str) -> None:
    scene, n = scene_of(twins[1], key=3), len(twins[1].ids)
    content = json.loads(looks(scene, view))
    levels = np.frombuffer(base64.b64decode(content["data"]), "<u2").reshape(content["pictures"], -1)
    made = np.zeros((content["pictures"], n, n))
    made[:, seen_cells(0, 0, n, n)] = levels / FULL
    np.testing.assert_allclose(made, shares(scene, view), atol=1 / FULL)
    assert content["text"].count("“") == 4  # the token and the three it looked at most


def test_analyses_of_a_record_are_those_of_a_whole_trace(twins: tuple[Any, Generation]) -> None:
    document = twins[1]
    record = Record(document)
    record.extend()
    whole: Trace = trace_of(document)
    for stored, traced in zip(record.trace().layers, whole.layers, strict=True):
        np.testing.assert_allclose(stored.attn_weights, traced.attn_weights, atol=1e-5)
        np.testing.assert_allclose(stored.attn_v, traced.attn_v, atol=1e-6)


def test_tokens_travel_as_data(twins: tuple[Any, Generation]) -> None:
    scene = scene_of(twins[1])
    for value in (stages(scene), looks(scene, "weights")):
        assert "<" not in value
        assert "<" in json.loads(value)["keys"]["tokens"]
