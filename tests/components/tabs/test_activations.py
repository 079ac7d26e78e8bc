"""The Activations tab without a browser: functions, the histogram of a layer, an activation swap."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from components.state.session import Session
from components.tabs.activations import Chosen, histogram, swapped, tab
from gpt import GPT, GPTConfig, LoadedModel, get_model, trace_text
from gpt.models.checkpoints.vocabularies import Characters
from tests.components.drawing import Drawn, as_read


def drawn_of(loaded, text):
    return Drawn(Session(as_read(loaded, text)), tab)


@pytest.fixture
def drawn():
    return drawn_of(get_model(), "The dog ran")


def test_the_functions_say_their_values_at_x_and_nothing_else_is_a_place(drawn):
    assert "GELU (tanh) is 0.8412" in drawn.update()["curves"]["text"]
    Chosen.x.set(drawn.session, -1)
    says = drawn.update()["curves"]["text"]
    assert "GELU (tanh) is −0.1588" in says
    assert "x = −0.75" in says
    assert "−1.00" in drawn.views["exact-gelu"]["text"]
    for wrong in (4, None, "1", float("nan"), True):
        with pytest.raises(ValueError, match="x"):
            Chosen.x.set(drawn.session, wrong)


def test_the_histogram_counts_every_value_of_the_layer_at_every_position(drawn):
    drawn.session.select(layer=2)
    says = drawn.update()["pre-activations"]["text"]
    ids = drawn.session.document.ids
    assert "Layer 2" in says
    assert f"from {len(ids)} tokens" in says
    shares, of = drawn.session.snapshot()[histogram]
    values = trace_text(drawn.session.document.loaded, ids).layers[2].mlp_pre
    assert of["n"] == values.numel()
    assert shares.sum() + of["outside"] == pytest.approx(1)
    assert of["mean"] == pytest.approx(values.mean().item(), abs=1e-5)
    assert of["negative"] == pytest.approx((values < 0).float().mean().item(), abs=1e-6)


@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu", "relu", "silu"])
def test_only_another_activation_moves_the_prediction(drawn, activation):
    Chosen.swap.set(drawn.session, activation)
    bars = drawn.update()["activation-bars"]["bars"]
    before, after = drawn.session.snapshot()[swapped]
    assert (
        torch.equal(before, after)
        == (activation == "gelu_tanh")
        == all(before == after for _, before, after, *_ in bars)
    )


def test_the_smallest_model_and_a_page_without_a_text_are_shown_too():
    config, letters = GPTConfig(3, 4, n_layer=1, n_head=1, n_embd=4), Characters(["a", "b", "\n"])
    drawn = drawn_of(LoadedModel("tiny", GPT(config).eval(), letters, torch.device("cpu"), "fp32"), "ab")
    shown = drawn.update()
    assert "Layer 0" in shown["pre-activations"]["text"]
    assert len(shown["activation-bars"]["bars"]) == 3
    assert np.isfinite(drawn.session.snapshot()[histogram][1]["std"])
    assert Drawn(Session(None), tab).update()["pre-activations"]["text"] == ""
