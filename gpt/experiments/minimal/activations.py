"""GELU, in GPT-2's tanh approximation."""

import math

import torch
from torch import Tensor, nn


class GELU(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + torch.tanh(inner))
