"""The Activations tab: the functions, and the prediction with another activation."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
import torch

from components.state.example import example
from components.tabs.activations.tab import exact_value, swap_value
from gpt import GPT, GPTConfig, LoadedModel, get_model
from gpt.models.checkpoints.vocabularies import Characters


def numbers(curve: dict[str, Any], axis: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(curve[axis]["bdata"]), curve[axis]["dtype"])


@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu", "relu", "silu"])
def test_only_another_activation_moves_the_prediction(activation: Any) -> None:
    figure = json.loads(swap_value(example(get_model()), 10, activation, "en"))["figure"]["data"]
    before, after = (numbers(bars, "x") for bars in figure[:2])
    assert (before == after).all() == (activation == "gelu_tanh")


def test_the_two_gelus_differ_by_less_than_the_width_of_a_line() -> None:
    (difference,) = json.loads(exact_value(1.0, "en"))["figure"]["data"]
    assert 1e-4 < np.abs(numbers(difference, "y")).max() < 5e-4


def test_the_smallest_model_is_shown_with_another_activation() -> None:
    config, letters = GPTConfig(3, 4, n_layer=1, n_head=1, n_embd=4), Characters(["a", "b", "\n"])
    loaded = LoadedModel("tiny", GPT(config).eval(), letters, torch.device("cpu"), "fp32")
    assert swap_value(example(loaded), 1, "relu", "en")
