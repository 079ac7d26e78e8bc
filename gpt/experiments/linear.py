"""nn.Linear with torch's default initial weights, drawn from a given generator."""

from __future__ import annotations

import math

import torch
from torch import nn


def linear(n_in: int, n_out: int, generator: torch.Generator) -> nn.Linear:
    """The layer that `nn.Linear(n_in, n_out)` makes when torch's global generator is in the same state."""
    layer = nn.utils.skip_init(nn.Linear, n_in, n_out)
    nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=generator)
    nn.init.uniform_(layer.bias, -1 / math.sqrt(n_in), 1 / math.sqrt(n_in), generator=generator)
    return layer
