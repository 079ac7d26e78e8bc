"""Token embedding: a row of numbers for each token in the vocabulary."""

import torch
from torch import Tensor, nn


class TokenEmbedding(nn.Module):
    """(B, T) ids -> (B, T, C)."""

    def __init__(self, vocab_size: int, n_embd: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(vocab_size, n_embd))

    def forward(self, idx: Tensor) -> Tensor:
        return self.weight[idx]  # row idx of the matrix
