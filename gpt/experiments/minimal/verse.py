"""Attention whose heads can be switched off, to find out what each head does."""

import math

import torch
from torch import Tensor

from gpt.experiments.minimal.attention import CausalSelfAttention
from gpt.experiments.minimal.configuration import Config


class SwitchedAttention(CausalSelfAttention):
    """(B, T, C) -> (B, T, C). on: (nh,), 1 for heads that are on and 0 for heads that are off."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.register_buffer("on", torch.ones(config.n_head), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        qkv = self.c_attn(x).view(B, T, 3, self.n_head, C // self.n_head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (B, nh, T, hs) each
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(self.future[:T, :T], -math.inf).softmax(dim=-1)
        heads = weights @ v * self.on[:, None, None]  # with 0, a head adds nothing
        return self.c_proj(heads.transpose(1, 2).reshape(B, T, C))
