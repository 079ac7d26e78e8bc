"""Concepts: a residual-stream vector as the sum of a few directions from a long list."""

import torch
from torch import Tensor, nn


class TopK(nn.Module):
    """A sparse autoencoder with n features, k of which are active on each token."""

    def __init__(self, n_embd: int, n: int, k: int) -> None:
        super().__init__()
        self.k = k
        self.encoder = nn.Linear(n_embd, n)
        self.decoder = nn.Parameter(torch.randn(n, n_embd))
        self.center = nn.Parameter(torch.zeros(n_embd))

    def activity(self, x: Tensor) -> Tensor:
        """(..., n_embd) -> (..., n), with zeros except for the k largest."""
        values, features = self.encoder(x).topk(self.k, dim=-1)
        zeros = torch.zeros(*x.shape[:-1], len(self.decoder))
        return zeros.scatter(-1, features, values.relu())

    def forward(self, x: Tensor) -> Tensor:
        return self.activity(x) @ self.decoder + self.center  # approximately x

    def loss(self, x: Tensor) -> Tensor:
        """Return the distance between the sum and the vector, which training minimises."""
        return (self(x) - x).square().sum(dim=-1).mean()

    def turn_up(self, x: Tensor, feature: int, strength: float) -> Tensor:
        """Add a direction to every vector (..., n_embd) in a text."""
        return x + strength * self.decoder[feature]
