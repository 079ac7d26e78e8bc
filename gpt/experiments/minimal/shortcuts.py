"""A deep network with or without shortcut connections."""

from itertools import pairwise

from torch import Tensor, nn

from gpt.experiments.minimal.activations import GELU


class DeepNetwork(nn.Module):
    """widths: sizes of the layers, such as [3, 3, 3, 3, 3, 1]."""

    def __init__(self, widths: list[int], shortcuts: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.gelu = GELU()
        self.shortcuts = shortcuts

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            out = self.gelu(layer(x))
            x = x + out if self.shortcuts and x.shape == out.shape else out
        return x
