"""The Activations tab without a browser: functions, the histogram of a layer, an activation swap."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
import torch

from components.state.session import Session
from components.state.text import Text
from components.tabs.activations import handlers
from components.tabs.activations.state import ActivationsState
from components.tabs.activations.views import VIEWS, exact_chart, swap_chart
from gpt import GPT, Generation, GPTConfig, LoadedModel, get_model
from gpt.experiments.activations import pre_activations
from gpt.models.checkpoints.token_table import Characters


def session_of(loaded, text):
    document = Generation(loaded, text)
    document.read()
    return Session(document)


@pytest.fixture
def session():
    return session_of(get_model(), "The dog ran")


def analysed(session):
    for _ in handlers.ANALYSIS.run(session):
        pass
    assert handlers.ANALYSIS.wanted(session.snapshot()) is None
    return drawn(session)


def drawn(session):
    snapshot = session.snapshot()
    return {view.name: view.draw(snapshot) for view in VIEWS}


def test_the_functions_say_their_values_at_x_and_nothing_else_is_a_place(session):
    assert "GELU (tanh) is 0.8412" in drawn(session)["curves"]["text"]
    handlers.set_x(session, -1)
    says = drawn(session)["curves"]["text"]
    assert "GELU (tanh) is −0.1588" in says
    assert "x = −0.75" in says
    assert "−1.00" in drawn(session)["exact-gelu"]["text"]
    for wrong in (4, None, "1", float("nan"), True):
        with pytest.raises(ValueError, match="x"):
            handlers.set_x(session, wrong)


def test_the_two_gelus_differ_by_less_than_the_width_of_a_line():
    (line, *_) = exact_chart(1.0, "en")["figure"]["data"]
    difference = np.frombuffer(base64.b64decode(line["y"]["bdata"]), line["y"]["dtype"])
    assert 1e-4 < np.abs(difference).max() < 5e-4


def test_the_histogram_counts_every_value_of_the_layer_at_every_position(session):
    handlers.choose_layer(session, 2)
    says = analysed(session)["pre-activations"]["text"]
    ids = session.document.ids
    assert "Layer 2" in says
    assert f"from {len(ids)} tokens" in says
    found = session.state(ActivationsState).histogram
    values = pre_activations(session.document.loaded.model, ids, 2)
    assert found.n == values.numel()
    assert found.shares.sum() + found.outside == pytest.approx(1)
    assert found.mean == pytest.approx(values.mean().item(), abs=1e-5)
    assert found.negative == pytest.approx((values < 0).float().mean().item(), abs=1e-6)


def test_only_layers_and_activations_that_exist_can_be_chosen(session):
    before = session.state(ActivationsState), session.selection
    for wrong in (-1, 99, "2", True, None):
        handlers.choose_layer(session, wrong)
    for wrong in ("tanh", None, 1, []):
        handlers.choose_activation(session, wrong)
    assert (session.state(ActivationsState), session.selection) == before


@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu", "relu", "silu"])
def test_only_another_activation_moves_the_prediction(session, activation):
    session.select(position=1)
    found = handlers.swap_activation(Text.of(session.document), 1, activation)
    assert torch.equal(found.before, found.after) == (activation == "gelu_tanh")
    bars = swap_chart(session.snapshot(), found)["figure"]["data"]
    assert (json.dumps(bars[0]["x"]) == json.dumps(bars[1]["x"])) == (activation == "gelu_tanh")


def test_the_swap_follows_the_selected_position_and_shows_no_other(session):
    session.select(position=0)
    first = analysed(session)["activation-swapped"]["text"]
    session.select(position=2)
    assert drawn(session)["activation-swapped"]["text"] == ""
    assert analysed(session)["activation-swapped"]["text"] not in ("", first)


def test_what_is_shown_is_of_the_text_and_nothing_is_computed_while_it_is_written(session):
    analysed(session)
    session.document.append(session.document.ids[0], after=len(session.document.ids) - 1)
    session.document.read()
    shown = drawn(session)
    assert shown["pre-activations"]["text"] == shown["activation-swapped"]["text"] == ""
    assert handlers.ANALYSIS.wanted(session.snapshot()) is not None
    turn = session.lock.begin()
    assert session.snapshot().generating
    assert handlers.ANALYSIS.wanted(session.snapshot()) is None
    session.lock.end(turn)


def test_the_smallest_model_and_a_page_without_a_text_are_shown_too():
    config, letters = GPTConfig(3, 4, n_layer=1, n_head=1, n_embd=4), Characters(["a", "b", "\n"])
    session = session_of(LoadedModel("tiny", GPT(config).eval(), letters, torch.device("cpu"), "fp32"), "ab")
    shown = analysed(session)
    assert "Layer 0" in shown["pre-activations"]["text"]
    assert shown["activation-swapped"]["figure"] is not None
    assert np.isfinite(session.state(ActivationsState).histogram.std)
    empty = Session(None)
    assert handlers.ANALYSIS.wanted(empty.snapshot()) is None
    assert drawn(empty)["pre-activations"]["text"] == ""
