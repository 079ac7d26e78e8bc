"""The average of a layer's heads in Write and Why? equals that of transformers. Inside has its own test."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from components.state.session import Session
from components.tabs.playground.prediction import choose_head, heatmap
from components.tabs.why.tab import tab as why
from components.text_views import AVERAGE, attention_shade
from components.widgets.tokens import FULL
from gpt import Tokenizer
from tests.components.drawing import Drawn
from tests.components.tabs.inside_session import document_of, unpacked
from tests.conftest import make_twins

LAYER, POSITION = 1, 7


@pytest.fixture
def shown(byte_tokenizer: Tokenizer) -> tuple[np.ndarray, Session]:
    """Return one layer's weights (T, T), averaged over transformers' heads, and a session that shows the average."""
    reference, ours = make_twins(vocab_size=byte_tokenizer.n_vocab, n_positions=64, n_layer=3, n_head=3, n_embd=36)
    session = Session(document_of(ours, byte_tokenizer))
    choose_head(session, AVERAGE)
    session.select(position=POSITION, layer=LAYER)
    with torch.inference_mode():
        heads = reference(torch.tensor([session.document.ids]), output_attentions=True).attentions[LAYER][0]
    assert (heads[0] - heads[1]).abs().max() > 0.01  # no single head may equal the average
    return np.mean([head.numpy() for head in heads], axis=0), session


def test_the_playground_s_heatmap_and_shades_show_the_mean_of_the_single_heads(
    shown: tuple[np.ndarray, Session],
) -> None:
    mean, session = shown
    picture = heatmap(session.snapshot())
    for n, row in enumerate(picture["cells"], start=1):
        np.testing.assert_allclose(unpacked(row, "f4", n), mean[n - 1, :n], atol=1e-5)
    assert n == len(mean)
    session.document.append(7)
    session.document.read()
    grown = heatmap(session.snapshot())
    assert grown["cells"][:-1] == picture["cells"]  # so a frame carries only the new row
    assert len(json.dumps(grown["figure"])) < 5000
    session.document.undo()
    assert "average of heads" in picture["text"]
    session.selection = replace(session.selection, shading="attention")
    snapshot = session.snapshot()
    largest, _, levels = attention_shade(snapshot.text, snapshot.selection).partition(":")
    shades = unpacked(levels, "<u2", -1) / FULL * float(largest)
    np.testing.assert_allclose(shades, mean[POSITION, : POSITION + 1], atol=2e-5)


def test_the_bars_in_why_show_the_mean_of_the_single_heads(shown: tuple[np.ndarray, Session]) -> None:
    mean, session = shown
    x = Drawn(session, why).update()["why-head"]["figure"]["data"][1]["x"]
    bars = unpacked(x["bdata"], x["dtype"], -1)
    np.testing.assert_allclose(bars, np.sort(mean[POSITION, : POSITION + 1])[::-1][: len(bars)], atol=1e-5)
