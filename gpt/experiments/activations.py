"""Activation functions: their curves, their slopes, and what a running model sends through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from gpt.checks import check_choice, check_layer
from gpt.config import Activation
from gpt.errors import GPTError
from gpt.model import ACTIVATIONS, GPT
from gpt.trace import Trace


@dataclass(frozen=True)
class Curve:
    """An activation function at some points: x, y and slope dy/dx, each a float64 tensor of the same shape."""

    x: Tensor
    y: Tensor
    slope: Tensor


def activation_curve(name: Activation, x: Tensor) -> Curve:
    """Values and slopes of an activation function; the slope is autograd's, not a formula of its own.

    Raises ValueError for a name that `GPTConfig` does not know.
    """
    check_activation(name)
    x = x.detach().double().requires_grad_()
    with torch.enable_grad():
        y = ACTIVATIONS[name](x)
        (slope,) = torch.autograd.grad(y.sum(), x)
    return Curve(x.detach(), y.detach(), slope)


def check_activation(name: str) -> None:
    """Raise ValueError for a name that `GPTConfig` does not know."""
    check_choice("activation", name, get_args(Activation))


def gelu_difference(x: Tensor) -> Tensor:
    """GPT-2's GELU minus the exact one, float64: at most 0.0005 away from it, furthest near |x| = 2.7."""
    return activation_curve("gelu_tanh", x).y - activation_curve("gelu", x).y


def lowest_point(name: Activation, low: float = -3.0, high: float = 0.0) -> float:
    """Where the slope changes from negative to positive between low and high, by bisection to 1e-12.

    For GELU near -0.75, the only place where its slope is zero. Raises ValueError if the sign does not change.
    """

    def slope(x: float) -> float:
        return activation_curve(name, torch.tensor(x)).slope.item()

    if not slope(low) < 0 < slope(high):
        raise GPTError("experiment.slope", name=name, low=low, high=high)
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return (low + high) / 2


@torch.inference_mode()
def pre_activations(model: GPT, ids: Sequence[int], layer: int) -> Tensor:
    """(T, n_ff): what one layer's feed-forward part sends through its activation function for a text.

    Raises ValueError for a layer that the model does not have.
    """
    check_layer(layer, model.config.n_layer)
    trace = Trace()
    model.hidden_states(torch.tensor([list(ids)], device=model.device), trace=trace)
    return trace.layers[layer].mlp_pre[0]
