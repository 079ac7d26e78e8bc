"""Layer normalisation."""

import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Mean 0 and variance 1 over the last dimension, then scale and shift."""

    def __init__(self, n_embd: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.bias = nn.Parameter(torch.zeros(n_embd))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, keepdim=True, unbiased=False)  # divides by n
        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias
