"""Code shared by the models with several naming conventions."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tests.parity.reference_models import HEADS, MASK, WIDTH

SIZE = WIDTH // HEADS


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Apply causal attention to (B, nh, T, hs)."""
    T = q.shape[2]
    scores = (q @ k.transpose(2, 3) / math.sqrt(SIZE)).masked_fill(MASK[:T, :T].bool(), -torch.inf)
    return scores.softmax(-1) @ v


def heads(x: Tensor) -> Tensor:
    """Split (B, T, C) into (B, nh, T, hs)."""
    return x.unflatten(2, (HEADS, SIZE)).transpose(1, 2)


def join(x: Tensor) -> Tensor:
    """Join (B, nh, T, hs) into (B, T, C)."""
    return x.transpose(1, 2).flatten(2)


def parameter(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape))
