"""Llama's gated feed-forward network."""

import torch
from torch import Tensor, nn


class SwiGLU(nn.Module):
    """(B, T, C) -> (B, T, C)."""

    def __init__(self, n_embd: int, n_ff: int) -> None:
        super().__init__()
        self.c_gate = nn.Linear(n_embd, n_ff, bias=False)
        self.c_fc = nn.Linear(n_embd, n_ff, bias=False)
        self.c_proj = nn.Linear(n_ff, n_embd, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.c_gate(x)
        gate = gate * torch.sigmoid(gate)  # SiLU
        return self.c_proj(gate * self.c_fc(x))
