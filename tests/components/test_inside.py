"""The values of the Inside tab: every number is the model's own, measured against a whole trace of the same text."""

from __future__ import annotations

import base64
import json
from copy import deepcopy
from dataclasses import replace
from typing import Any
from weakref import ref

import numpy as np
import pytest
import torch

from components.state.selection import Selection
from components.tabs.inside import views as inside_views
from components.tabs.inside.overview import Overview, overview
from components.tabs.inside.record import BINS, KEPT, WIDE, Record, pooled, strongest
from components.tabs.inside.tab import Memory, chosen_look, too_long
from components.widgets.flow import PARTS, packed
from components.widgets.heads import BUDGET, max_pooled, thumbnail_side
from gpt import Generation, Trace
from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.loading import LoadedModel
from gpt.tokenizer import Tokenizer
from tests.conftest import make_twins, randomized

TEXT = "the <b>cat</b> sat there, on the\nmat"
LOOK = Selection(position=11, layer=1, head=2)


def document_of(model: GPT, tokenizer: Tokenizer, text: str) -> Generation:
    document = Generation(LoadedModel("tiny", model, tokenizer, torch.device("cpu"), "fp32"), text)
    document.read()
    return document


@pytest.fixture(params=["learned", "rotary"])
def document(request: pytest.FixtureRequest, byte_tokenizer: Tokenizer) -> Generation:
    config = GPTConfig(
        vocab_size=byte_tokenizer.n_vocab, block_size=96, n_layer=3, n_head=3, n_embd=36, position=request.param
    )
    return document_of(randomized(GPT(config), 0.2).eval(), byte_tokenizer, TEXT)


@pytest.fixture
def record(document: Generation) -> Record:
    made = Record(document)
    made.extend()
    return made


def trace_of(document: Generation) -> Trace:
    trace = Trace()
    with torch.inference_mode():
        document.loaded.model(torch.tensor([document.ids[: document.n_read]]), trace=trace)
    return trace


def shown(record: Record, look: Selection = LOOK) -> dict[str, Any]:
    return json.loads(inside_views.flow(record, look, "en"))


def unpacked(strip: dict[str, Any], rows: int) -> np.ndarray:
    levels = np.frombuffer(base64.b64decode(strip["data"]), np.uint8).reshape(rows, strip["bins"])
    return (levels / 127.5 - 1) * float(strip["scale"])


def test_every_strip_is_the_pooled_vector_of_a_whole_trace(record: Record) -> None:
    trace, content = trace_of(record.document), shown(record)
    layer = trace.layers[LOOK.layer]
    vectors = {
        "tok": trace.token_embedding[0],
        "pre": layer.resid_pre[0],
        "q": layer.attn_q[0, LOOK.head],
        "k": layer.attn_k[0, LOOK.head],
        "v": layer.attn_v[0, LOOK.head],
        "z": layer.attn_weights[0, LOOK.head] @ layer.attn_v[0, LOOK.head],
        "att": layer.attn_out[0],
        "mid": layer.resid_mid[0],
        "out": layer.mlp_out[0],
        "post": layer.resid_post[0],
        "fin": trace.final_norm[0],
    }
    if trace.position_embedding is not None:
        vectors["pos"] = trace.position_embedding.reshape(-1, 36)
    assert set(content["strips"]) == {*vectors, "ff"}
    for name, vector in vectors.items():
        strip, expected = content["strips"][name], pooled(vector.numpy(), min(BINS, vector.shape[1]))
        assert strip["width"] == vector.shape[1]
        scale = float(strip["scale"])
        assert scale == pytest.approx(np.percentile(np.abs(expected), inside_views.FULL), rel=0.006)
        np.testing.assert_allclose(
            unpacked(strip, record.length), expected.clip(-scale, scale), atol=scale / 255 + 1e-6
        )


def test_neurons_show_the_strongest_of_each_group(record: Record) -> None:
    post = trace_of(record.document).layers[LOOK.layer].mlp_post[0].numpy()  # (T, 144): groups of 3
    groups = post.reshape(len(post), WIDE, 3)
    expected = np.take_along_axis(groups, np.abs(groups).argmax(axis=2)[..., None], axis=2)[..., 0]
    np.testing.assert_allclose(record.strip(LOOK.layer, "mlp_post").values, expected, atol=1e-5)
    neurons = record.neurons(LOOK.layer)
    np.testing.assert_array_equal(neurons.active[: len(post)], (post > 0).sum(axis=1))
    np.testing.assert_array_equal(neurons.strongest[: len(post)], post.argmax(axis=1))


def test_weights_and_scores_of_the_selected_row_are_the_traced_ones(record: Record) -> None:
    layer, content = trace_of(record.document).layers[LOOK.layer], shown(record)
    weights = layer.attn_weights[0, LOOK.head].numpy()
    np.testing.assert_allclose(content["row"], weights[LOOK.position], rtol=1e-3, atol=1e-6)
    scores = layer.attn_scores[0, LOOK.head].numpy()[LOOK.position]
    np.testing.assert_allclose(content["scores"], scores, rtol=1e-3, atol=1e-5)
    matrix = np.frombuffer(base64.b64decode(content["weights"]), np.uint8).reshape(weights.shape) / 255
    np.testing.assert_allclose(matrix, weights, atol=0.5 / 255 + 1e-6)


def test_the_next_tokens_are_the_most_probable_of_the_raw_softmax(record: Record) -> None:
    document = record.document
    with torch.inference_mode():
        p = document.loaded.model(torch.tensor([document.ids]))[0, LOOK.position].softmax(0).numpy()
    assert [share for _, share in shown(record)["next"]] == pytest.approx(sorted(p, reverse=True)[:8], rel=1e-3)


def test_lengths_in_the_words_are_those_of_transformers(byte_tokenizer: Tokenizer) -> None:
    reference, ours = make_twins(vocab_size=byte_tokenizer.n_vocab, n_positions=64, n_layer=3, n_head=3, n_embd=36)
    document = document_of(ours, byte_tokenizer, TEXT)
    record = Record(document)
    record.extend()
    with torch.inference_mode():
        states = reference(torch.tensor([document.ids]), output_hidden_states=True, output_attentions=True)
    words = shown(record)["words"]
    before = states.hidden_states[LOOK.layer][0, LOOK.position]
    assert words["pre"].endswith(f"|x| = {before.norm():.2f}")
    mean = f"{before.mean():.2f}".replace("-", "−")
    assert f"mean {mean}, std {(before.var(unbiased=False) + 1e-5).sqrt():.2f}" in words["norm1"]
    assert words["post"].endswith(f"|x| = {states.hidden_states[LOOK.layer + 1][0, LOOK.position].norm():.2f}")
    expected = states.attentions[LOOK.layer][0, LOOK.head, LOOK.position].numpy()
    np.testing.assert_allclose(shown(record)["row"], expected, atol=1e-4)


def test_a_record_that_grew_with_the_text_equals_one_made_at_the_end(document: Generation) -> None:
    grown, whole = Record(document), Record(document)
    grown.extend()
    for token_id in (5, 6, 7):
        document.append(token_id)
        document.read()
        assert grown.extend()
    assert not grown.extend()
    whole.extend()
    for place in [(None, "final_norm"), *((layer, name) for layer in range(3) for name in KEPT)]:
        first, second = grown.strip(*place), whole.strip(*place)
        for numbers in ("values", "norm", "mean", "std"):
            np.testing.assert_allclose(getattr(first, numbers), getattr(second, numbers), atol=2e-4)
    np.testing.assert_allclose(grown.weights(2), whole.weights(2), atol=1e-5)


def test_another_selection_runs_no_model(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GPT, "hidden_states", lambda *_, **__: pytest.fail("the model ran"))
    for look in (Selection(), Selection(position=0), replace(LOOK, layer=2), replace(LOOK, head=0)):
        assert shown(record, look)["layer"] == look.layer
        overview(record, look, "zh", {})


def test_every_part_has_its_three_lines_in_both_languages(record: Record) -> None:
    for language in ("en", "zh"):
        words = json.loads(inside_views.flow(record, LOOK, language))["words"]
        assert set(words) == {*PARTS} - {"stack"}
        assert all(text.count("\n") == 2 for text in words.values())


def test_tokens_travel_as_data_and_hold_no_markup(record: Record) -> None:
    value = inside_views.flow(record, LOOK, "en")
    assert "<" not in value
    assert value.isascii()
    assert "<" in json.loads(value)["tokens"]


@pytest.mark.parametrize(
    ("length", "position", "expected"),
    [(10, 3, (0, 10)), (64, 0, (0, 64)), (200, 199, (136, 200)), (200, 100, (45, 109)), (200, 0, (0, 64))],
)
def test_a_long_text_is_shown_around_the_selection(length: int, position: int, expected: tuple[int, int]) -> None:
    start, end = inside_views.window(length, position)
    assert (start, end) == expected
    assert start <= position < end


def test_what_is_outside_the_window_is_said(document: Generation) -> None:
    for _ in range(60):
        document.append(5)
    document.read()
    record = Record(document)
    record.extend()
    content = shown(record, Selection(layer=1, head=0))
    row = trace_of(document).layers[1].attn_weights[0, 0, -1].numpy()
    assert len(content["tokens"]) == inside_views.ROWS
    assert f"Shown: positions {content['start']} to {record.length - 1}" in content["text"]
    np.testing.assert_allclose(content["row"], row[content["start"] :], rtol=1e-3, atol=1e-6)


def test_thumbnails_keep_the_largest_weight_and_fit_their_budget() -> None:
    weights = np.random.default_rng(0).random((2, 100, 100)).astype(np.float32)
    small = max_pooled(weights, 25)
    np.testing.assert_array_equal(small, weights.reshape(2, 25, 4, 25, 4).max(axis=(2, 4)))
    assert thumbnail_side(4, 4, 20) == 20
    for n_layer, n_head in ((1, 1), (12, 12), (48, 25)):
        side = thumbnail_side(n_layer, n_head, 1024)
        assert n_layer * n_head * side * (side + 1) / 2 <= BUDGET


@pytest.mark.parametrize(("value", "level"), [(-2.0, 0), (-1.0, 0), (0.0, 128), (1.0, 255), (9.0, 255)])
def test_zero_is_the_middle_of_the_map(value: float, level: int) -> None:
    assert base64.b64decode(packed(np.array([value]), 1.0)) == bytes([level])


def test_pooling_covers_every_number_once() -> None:
    x = np.arange(10, dtype=np.float32)[None]
    np.testing.assert_allclose(pooled(x, 4), [[0.5, 3.0, 5.5, 8.0]])
    np.testing.assert_allclose(strongest(np.array([[1.0, -3.0, 2.0, 0.5]]), 2), [[-3.0, 2.0]])


@pytest.mark.parametrize("sent", [{"layer": 3}, {"head": -1}, {"position": 10**9}, {"layer": "1"}, {"head": True}, {}])
def test_a_selection_that_does_not_exist_changes_nothing(document: Generation, sent: dict[str, Any]) -> None:
    assert chosen_look(LOOK, document, sent) == LOOK


def test_a_selection_changes_what_it_names(document: Generation) -> None:
    assert chosen_look(LOOK, document, {"layer": 2, "head": 0}) == replace(LOOK, layer=2, head=0)
    assert chosen_look(LOOK, document, {"position": 4}) == replace(LOOK, position=4)


def test_another_document_gets_another_record(document: Generation) -> None:
    memory = Memory()
    first = memory.read(document)
    assert memory.read(document) is first
    assert memory.read(document.copy()) is not first


def test_a_text_too_long_for_its_memory_is_recorded_in_part_and_that_is_said(document: Generation) -> None:
    config = document.loaded.model.config
    memory = 3 * 4 * config.n_layer * config.n_embd * 10 + 5
    record = Record(document, memory)
    record.extend()
    assert record.length == 10 < document.n_read
    content = shown(record, Selection(layer=1, head=0))
    assert (content["selected"], content["total"]) == (9, 10)
    np.testing.assert_allclose(content["row"], trace_of(document).layers[1].attn_weights[0, 0, 9, :10], atol=1e-4)
    assert f"first 10 of {document.n_read} tokens" in too_long(record, "en")
    assert not record.extend()
    whole = Record(document)
    whole.extend()
    assert too_long(whole, "en") == ""
    visitor = deepcopy(Memory(memory))  # of the page's
    first = ref(visitor.read(document))
    assert first().length == 10
    visitor.kept["machine"] = {"overview": Overview(first()), "starts": (0, 0)}
    visitor.read(document.copy())
    assert first() is None  # there are never two
