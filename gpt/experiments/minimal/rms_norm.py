"""RMSNorm."""

import torch
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """Divides by the root mean square, without subtracting the mean or adding a shift."""

    def __init__(self, n_embd: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean_square = x.square().mean(dim=-1, keepdim=True)
        return x / torch.sqrt(mean_square + self.eps) * self.weight
