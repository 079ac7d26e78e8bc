"""Activation functions and their slopes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gpt.config import Activation
from gpt.layers import ACTIVATIONS


@dataclass(frozen=True)
class Curve:
    """Points of an activation function: x, y and the slope dy/dx, float64 tensors of the same shape."""

    x: Tensor
    y: Tensor
    slope: Tensor


def activation_curve(name: Activation, x: Tensor) -> Curve:
    """Compute values and slopes (by autograd) of an activation function."""
    x = x.detach().double().requires_grad_()
    with torch.enable_grad():
        y = ACTIVATIONS[name](x)
        (slope,) = torch.autograd.grad(y.sum(), x)
    return Curve(x.detach(), y.detach(), slope)


def gelu_difference(x: Tensor) -> Tensor:
    """Return GPT-2's approximation of GELU minus the exact function, in float64.

    The difference stays below 0.0005 and is largest near |x| = 2.7.
    """
    return activation_curve("gelu_tanh", x).y - activation_curve("gelu", x).y


def lowest_point(name: Activation, low: float = -3.0, high: float = 0.0) -> float:
    """Find where the slope changes from negative to positive between low and high, by bisection to 1e-12.

    For GELU, this is its only stationary point, near -0.75.
    """

    def slope(x: float) -> float:
        return activation_curve(name, torch.tensor(x)).slope.item()

    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return (low + high) / 2
