"""Positions: learned vectors, or fixed sine waves."""

import torch
from torch import Tensor, nn


class PositionEmbedding(nn.Module):
    """Adds a learned vector for each position: (B, T, C) -> (B, T, C)."""

    def __init__(self, block_size: int, n_embd: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(block_size, n_embd))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight[: x.shape[1]]


class SinePositions(nn.Module):
    """Adds sine and cosine waves instead; n_embd must be even."""

    def __init__(self, n_embd: int) -> None:
        super().__init__()
        self.frequencies = 10000 ** (-torch.arange(0, n_embd, 2) / n_embd)

    def forward(self, x: Tensor) -> Tensor:
        angles = torch.arange(x.shape[1])[:, None] * self.frequencies  # (T, C / 2)
        return x + torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)
