"""Attention, step 3: a head with query, key and value."""

import math

import torch
from torch import Tensor, nn

from gpt.experiments.minimal.configuration import Config


class Head(nn.Module):
    """(B, T, C) -> (B, T, hs)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.query = nn.Linear(config.n_embd, config.head_size)
        self.key = nn.Linear(config.n_embd, config.head_size)
        self.value = nn.Linear(config.n_embd, config.head_size)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.query(x), self.key(x), self.value(x)  # (B, T, hs)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, T, T)
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -math.inf).softmax(dim=-1)
        return weights @ v
