"""Attention, step 4: all heads at once, a mask, and a projection."""

import math

import torch
from torch import Tensor, nn

from gpt.experiments.minimal.configuration import Config


class CausalSelfAttention(nn.Module):
    """(B, T, C) -> (B, T, C)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.n_head = config.n_head
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)  # q, k, v
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        self.dropout = nn.Dropout(config.dropout)
        future = torch.ones(config.block_size, config.block_size).triu(1)
        self.register_buffer("future", future.bool(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        qkv = self.c_attn(x).view(B, T, 3, self.n_head, C // self.n_head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (B, nh, T, hs) each
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(self.future[:T, :T], -math.inf)
        weights = self.dropout(scores.softmax(dim=-1))  # (B, nh, T, T)
        heads = (weights @ v).transpose(1, 2).reshape(B, T, C)
        return self.dropout(self.c_proj(heads))
