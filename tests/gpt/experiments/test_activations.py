"""Activation functions, compared with their formulas."""

from __future__ import annotations

import math

import pytest
import torch

from gpt.experiments.activations import activation_curve, gelu_difference, lowest_point, pre_activations
from gpt.model import GPT
from gpt.trace import Trace


def test_the_two_gelus_differ_as_their_formulas_do() -> None:
    for x in (-2.7, -1.0, 0.0, 0.5, 2.7):
        exact = x * (1 + math.erf(x / math.sqrt(2))) / 2
        approximate = x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
        assert gelu_difference(torch.tensor(x)).item() == pytest.approx(approximate - exact, abs=1e-7)
    difference = gelu_difference(torch.linspace(-6, 6, 1201)).abs()
    assert 4e-4 < difference.max() < 5e-4
    assert abs(-6 + difference.argmax().item() / 100) == pytest.approx(2.7, abs=0.01)


def test_silu_has_its_value_slope_and_lowest_point() -> None:
    x = torch.tensor([-2.0, 0.0, 1.5])
    curve = activation_curve("silu", x)
    sigma = [1 / (1 + math.exp(-value)) for value in x.tolist()]
    assert curve.y.tolist() == pytest.approx([v * s for v, s in zip(x.tolist(), sigma, strict=True)])
    slopes = [s * (1 + v * (1 - s)) for v, s in zip(x.tolist(), sigma, strict=True)]
    assert curve.slope.tolist() == pytest.approx(slopes)
    lowest = lowest_point("silu")  # where 1 + x (1 - sigmoid(x)) = 0, so the value is 1 + x
    assert activation_curve("silu", torch.tensor(lowest)).y.item() == pytest.approx(1 + lowest, abs=1e-6)


def test_pre_activations_are_those_of_the_trace(model: GPT) -> None:
    trace = Trace()
    model(torch.tensor([[5, 1, 60]]), trace=trace)
    assert torch.equal(pre_activations(model, [5, 1, 60], 2), trace.layers[2].mlp_pre[0])
    with pytest.raises(ValueError, match="layer 3 does not exist"):
        pre_activations(model, [1], 3)
