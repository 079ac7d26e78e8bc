"""Attention with a key-value cache and a fused kernel."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpt.experiments.minimal.configuration import Config


class CachedAttention(nn.Module):
    """(B, T, C) -> (B, T, C), for T new tokens. The cache holds the earlier ones."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.n_head = config.n_head
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        self.cache: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        qkv = self.c_attn(x).view(B, T, 3, self.n_head, C // self.n_head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (B, nh, T, hs)
        if self.cache is not None:
            k = torch.cat((self.cache[0], k), dim=2)  # (B, nh, S, hs)
            v = torch.cat((self.cache[1], v), dim=2)
        self.cache = k, v
        S = k.shape[2]
        visible = torch.ones(T, S, dtype=torch.bool).tril(S - T)
        heads = F.scaled_dot_product_attention(q, k, v, visible)  # stores no weights
        return self.c_proj(heads.transpose(1, 2).reshape(B, T, C))
