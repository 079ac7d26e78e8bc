"""Attention, step 2: the weights come from dot products."""

import math

import torch
from torch import Tensor, nn


class DotProductAttention(nn.Module):
    """(B, T, C) -> (B, T, C): similar vectors get more weight."""

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        scores = x @ x.transpose(-2, -1)  # (B, T, T)
        future = torch.ones(T, T, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -math.inf).softmax(dim=-1)
        return weights @ x
