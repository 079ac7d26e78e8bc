"""Rotary positions."""

import torch
from torch import Tensor, nn


class Rotary(nn.Module):
    """Rotates queries or keys (..., T, hs) by their positions; hs must be even."""

    def __init__(self, head_size: int, base: float = 10000.0) -> None:
        super().__init__()
        half = head_size // 2
        self.frequencies = base ** (-torch.arange(half) / half)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        positions = torch.arange(start, start + x.shape[-2])
        angles = positions[:, None] * self.frequencies  # (T, hs / 2)
        cos, sin = angles.cos(), angles.sin()
        a, b = x.chunk(2, dim=-1)  # pairs to rotate
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
