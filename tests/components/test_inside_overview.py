"""All heads at a glance: what grew token by token is what a whole trace says, and little of it travels twice."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from components.state.selection import Selection
from components.tabs.inside.overview import BLOCK, Overview, closer, overview
from components.tabs.inside.record import Record
from components.widgets.heads import NEAR
from gpt import Generation
from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.loading import LoadedModel
from gpt.tokenizer import Tokenizer
from tests.components.test_inside import trace_of
from tests.conftest import randomized

LOOK = Selection(layer=1, head=2)


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, nothing comes in parts."""
    monkeypatch.setattr("components.tabs.inside.overview.SECONDS", math.inf)


@pytest.fixture
def document(byte_tokenizer: Tokenizer) -> Generation:
    config = GPTConfig(vocab_size=byte_tokenizer.n_vocab, block_size=160, n_layer=2, n_head=3, n_embd=12)
    loaded = LoadedModel("tiny", randomized(GPT(config), 0.2).eval(), byte_tokenizer, torch.device("cpu"), "fp32")
    document = Generation(loaded, "the cat sat")
    document.read()
    return document


class Browser:
    """What the widget's script does with its values: keeps the rows that are finished, puts the new ones below."""

    def __init__(self) -> None:
        self.key, self.base, self.received = "", b"", 0

    def pictures(self, value: str) -> np.ndarray:
        content: dict[str, Any] = json.loads(value)
        self.received += len(value)
        if "base" in content:
            self.key, self.base = content["key"], base64.b64decode(content["base"])
        assert content["key"] == self.key, "it builds on what the browser does not hold"
        side, heads = content["side"], content["n_layer"] * content["n_head"]
        pictures = np.zeros((heads, side, side), np.uint8)
        data, at = self.base + base64.b64decode(content["rows"]), 0
        for row in range(side):
            levels = np.frombuffer(data[at : at + heads * (row + 1)], np.uint8).reshape(heads, row + 1)
            pictures[:, row, : row + 1] = levels
            at += levels.size
        assert at == len(data)
        return pictures.reshape(content["n_layer"], content["n_head"], side, side)


def expected(document: Generation, side: int) -> np.ndarray:
    """Every head's largest weights, from a whole trace."""
    weights = np.stack([layer.attn_weights[0].numpy() for layer in trace_of(document).layers])
    factor = -(-weights.shape[-1] // side)
    room = np.zeros((*weights.shape[:2], side * factor, side * factor), np.float32)
    room[..., : weights.shape[-1], : weights.shape[-1]] = weights
    return np.round(255 * room.reshape(*weights.shape[:2], side, factor, side, factor).max(axis=(3, 5)))


def test_what_grew_with_the_text_is_what_a_whole_trace_says(document: Generation) -> None:
    record, kept, browser = Record(document), {}, Browser()
    for count in (0, 1, 1, 30, 40, 1, 20, 5):
        for number in range(count):
            document.append(5 + number % 7)
        document.read()
        record.extend()
        pictures = browser.pictures(overview(record, LOOK, "en", kept))
        wanted = expected(document, pictures.shape[-1])
        assert np.abs(pictures - wanted).max() <= 1  # a batch of another size rounds otherwise
    assert record.length > pictures.shape[-1]


def test_a_long_text_comes_in_parts_and_ends_up_the_same(document: Generation) -> None:
    document.append(*(5 + number % 7 for number in range(BLOCK + 30)))
    document.read()
    record, kept, browser = Record(document), {}, Browser()
    record.extend()
    made = kept["overview"] = Overview(record)
    assert not made.extend(seconds=1e-9)
    assert len(made.ids) == BLOCK
    pictures = browser.pictures(overview(record, LOOK, "en", kept))
    while kept["more"]:
        pictures = browser.pictures(overview(record, LOOK, "en", kept))
    assert np.abs(pictures - expected(document, pictures.shape[-1])).max() <= 1


def test_the_shares_are_means_of_the_traced_weights(document: Generation) -> None:
    record = Record(document)
    record.extend()
    made = Overview(record)
    made.extend()
    document.append(7)
    document.read()
    record.extend()
    made.extend()
    n = record.length
    for layer, traced in enumerate(trace_of(document).layers):
        weights = traced.attn_weights[0].numpy()
        ways = (weights[:, 1:, 0], np.diagonal(weights, -1, 1, 2), np.diagonal(weights, 0, 1, 2))
        for column, way in enumerate(ways):
            np.testing.assert_allclose(made.shares[layer, :, column], way.mean(axis=1), atol=1e-5)
    assert made.shares.shape == (2, 3, 3)
    assert n == len(made.ids)


def test_a_new_token_costs_a_row_and_a_selection_less(document: Generation) -> None:
    for number in range(40):
        document.append(5 + number % 7)
    document.read()
    record, kept, browser = Record(document), {}, Browser()
    record.extend()
    whole = overview(record, LOOK, "en", kept)
    browser.pictures(whole)
    document.append(9)
    document.read()
    record.extend()
    row = overview(record, LOOK, "en", kept)
    browser.pictures(row)
    assert len(row) < len(whole) / 4
    browser.pictures(overview(record, Selection(layer=0, head=1), "en", kept))
    kept.pop("sent")
    Browser().pictures(overview(record, LOOK, "en", kept))  # a page that holds nothing gets everything


def test_a_text_that_went_another_way_starts_afresh(document: Generation) -> None:
    record, kept, browser = Record(document), {}, Browser()
    record.extend()
    browser.pictures(overview(record, LOOK, "en", kept))
    other = Generation(document.loaded, "the dog ran off")
    other.read()
    record = Record(other)
    record.extend()
    pictures = browser.pictures(overview(record, LOOK, "en", kept))
    np.testing.assert_allclose(pictures, expected(other, pictures.shape[-1]), atol=1)


def test_a_text_that_was_shortened_shows_what_is_left(document: Generation) -> None:
    record, kept, browser = Record(document), {}, Browser()
    record.extend()
    before = browser.pictures(overview(record, LOOK, "en", kept))
    for number in range(5):
        document.append(5 + number)
    document.read()
    record.extend()
    browser.pictures(overview(record, LOOK, "en", kept))
    for _ in range(5):
        document.undo()
    record.extend()
    np.testing.assert_allclose(browser.pictures(overview(record, LOOK, "en", kept)), before, atol=1)


def test_the_one_that_is_looked_at_comes_in_more_pixels_and_names_its_text(document: Generation) -> None:
    assert closer({}, 0, 0) == ""
    document.append(*(5 + number % 7 for number in range(130)))
    document.read()
    record, kept = Record(document), {}
    record.extend()
    content = json.loads(overview(record, LOOK, "en", kept))
    near = json.loads(closer(kept, 1, 2))
    assert (near["layer"], near["head"], near["near"]) == (1, 2, content["near"])
    weights = trace_of(document).layers[1].attn_weights[0, 2].numpy()
    assert content["side"] < near["side"] == NEAR < len(weights) == content["tokens"]
    edges = [*(np.arange(NEAR) * len(weights) // NEAR), len(weights)]
    data, at = np.frombuffer(base64.b64decode(near["rows"]), np.uint8), 0
    for row in range(NEAR):
        for column in range(row + 1):
            largest = weights[edges[row] : edges[row + 1], edges[column] : edges[column + 1]].max()
            assert abs(int(data[at]) - 255 * largest) <= 1
            at += 1
    assert at == len(data)
    document.append(5)
    document.read()
    record.extend()
    assert json.loads(overview(record, LOOK, "en", kept))["near"] != near["near"]
