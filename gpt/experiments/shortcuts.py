"""Gradients in a deep network with and without shortcut connections."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt.config import Activation
from gpt.experiments.initialisation import linear
from gpt.layers import ACTIVATIONS


@dataclass(frozen=True)
class ShortcutGradients:
    """Mean absolute gradient of each layer's weights, starting with the first layer; 0 if it underflows float32."""

    without: tuple[float, ...]
    with_shortcuts: tuple[float, ...]


class DeepNetwork(nn.Module):
    """Linear layers with activations. With shortcuts, a layer adds its input to its output if their shapes match."""

    def __init__(self, widths: list[int], activation: Activation, shortcuts: bool, generator: torch.Generator) -> None:
        super().__init__()
        self.layers = nn.ModuleList(linear(a, b, generator) for a, b in pairwise(widths))
        self.activation, self.shortcuts = ACTIVATIONS[activation], shortcuts

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            out = self.activation(layer(x))
            x = x + out if self.shortcuts and x.shape == out.shape else out
        return x


def shortcut_gradients(
    *, depth: int = 5, width: int = 3, seed: int = 123, activation: Activation = "gelu_tanh"
) -> ShortcutGradients:
    """Return the gradients of one step without and with shortcuts, from the same initial weights.

    Of the `depth` layers, the last has one output and the others have `width`. The input decreases linearly from 1 to
    -1, the target is 0, and the loss is the squared error.
    """
    widths = [width] * depth + [1]
    return ShortcutGradients(*(mean_gradients(widths, seed, activation, shortcuts) for shortcuts in (False, True)))


def mean_gradients(widths: list[int], seed: int, activation: Activation, shortcuts: bool) -> tuple[float, ...]:
    """Return the mean absolute weight gradient of each layer in one network."""
    network = DeepNetwork(widths, activation, shortcuts, torch.Generator().manual_seed(seed))
    with torch.enable_grad():
        x = torch.linspace(1, -1, widths[0])[None]  # (1, width)
        loss = F.mse_loss(network(x), torch.zeros(1, 1))
        gradients = torch.autograd.grad(loss, [layer.get_parameter("weight") for layer in network.layers])
    return tuple(gradient.abs().mean().item() for gradient in gradients)
