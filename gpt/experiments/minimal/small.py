"""Attention and positions for texts with padding on the left."""

import math

import torch
from torch import Tensor


def padded_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """q, k, v (B, nh, T, hs); mask (B, T): 1 for real tokens, 0 for padding."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    visible = torch.ones_like(scores, dtype=torch.bool).tril()  # the past
    visible &= mask[:, None, None].bool()  # only real tokens
    weights = scores.masked_fill(~visible, -math.inf).softmax(dim=-1)
    weights = weights.masked_fill(~visible, 0)  # fully masked rows would be NaN
    return weights @ v


def padded_positions(mask: Tensor) -> Tensor:
    """Positions (B, T), with real tokens counted from 0."""
    return (mask.cumsum(dim=-1) - 1).clamp(min=0)
