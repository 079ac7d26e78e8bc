"""The overview of all heads: every number is the model's own, compared with a full trace."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from components.tabs.inside import handlers
from components.tabs.inside.head_overview import BLOCK
from components.widgets.heads import NEAR
from gpt import Generation, Tokenizer
from tests.components.tabs.inside_session import RANDOM_MODELS, Inside, document_of, random_document, trace_of, unpacked


@pytest.fixture(params=RANDOM_MODELS)
def document(request: pytest.FixtureRequest, byte_tokenizer: Tokenizer) -> Generation:
    return random_document(request.param, byte_tokenizer)


def pictures(inside: Inside) -> np.ndarray:
    """Assemble the overview like the browser, (n_layer, n_head, side, side)."""
    content = inside.shown("heads")
    shape, side = (content["n_layer"], content["n_head"]), content["side"]
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
    assert inside.state.overview.factor > 1
    shares = inside.state.overview.shares
    for layer, traced in enumerate(trace_of(document).layers):
        weights = traced.attn_weights[0].numpy()
        columns = (weights[:, 1:, 0], np.diagonal(weights, -1, 1, 2), np.diagonal(weights, 0, 1, 2))
        for column, values in enumerate(columns):
            np.testing.assert_allclose(shares[layer, :, column], values.mean(axis=1), atol=1e-5)


def test_a_new_token_sends_a_row_of_pixels_and_a_selection_none(document: Generation) -> None:
    inside = Inside(document)
    inside.write(*(5 + number % 7 for number in range(20)))

    def rows() -> Any:
        return json.loads(inside.renderer.frame(inside.session))["views"]["heads"].get("rows")

    assert len(rows()) == len(document.ids)
    inside.write(9)
    assert (rows()["$lines"], len(inside.shown("heads")["rows"])) == (len(document.ids) - 1, len(document.ids))
    inside.select(layer=0, head=1)
    assert rows() is None


def test_a_text_that_was_shortened_or_replaced_shows_what_is_there(document: Generation) -> None:
    inside = Inside(document)
    before = pictures(inside)
    inside.write(5, 6, 7)
    with inside.session.changing():
        document.undo()
    inside.analyse()
    np.testing.assert_allclose(pictures(inside), before, atol=1)
    inside.session.document = document_of(document.loaded.model, document.loaded.tokenizer, "the dog ran off")
    inside.analyse()
    shown = pictures(inside)
    np.testing.assert_allclose(shown, expected_pictures(inside.session.document, shown.shape[-1]), atol=1)


def test_the_head_under_the_pointer_comes_in_more_pixels(document: Generation) -> None:
    document.append(*(5 + number % 7 for number in range(130)))
    document.read()
    inside = Inside(document)
    assert inside.shown("heads")["closer"] is None
    handlers.magnify_head(inside.session, {"layer": 1, "head": 2})
    content = inside.shown("heads")
    closer, weights = content["closer"], trace_of(document).layers[1].attn_weights[0, 2].numpy()
    assert (closer["layer"], closer["head"]) == (1, 2)
    assert content["side"] < closer["side"] == NEAR < len(weights) == content["tokens"]
    edges = [*(np.arange(NEAR) * len(weights) // NEAR), len(weights)]
    levels, at = unpacked(closer["rows"], "u1", -1), 0
    for row in range(NEAR):
        for column in range(row + 1):
            largest = weights[edges[row] : edges[row + 1], edges[column] : edges[column + 1]].max()
            assert abs(int(levels[at]) - 255 * largest) <= 1
            at += 1
    assert at == len(levels)
