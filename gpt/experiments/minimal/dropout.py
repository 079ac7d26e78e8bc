"""Dropout."""

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """In training mode, sets each number to 0 with probability p."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        kept = torch.rand_like(x) >= self.p
        return x * kept / max(1 - self.p, 1e-12)  # keeps the expected sum
