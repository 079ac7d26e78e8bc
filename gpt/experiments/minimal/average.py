"""Attention, step 1: every token becomes the mean of the past."""

import torch
from torch import Tensor, nn


class MeanOfThePast(nn.Module):
    """(B, T, C) -> (B, T, C): the mean of each vector and all vectors before it."""

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        past = torch.ones(T, T).tril()  # row i: ones up to i
        weights = past / past.sum(dim=-1, keepdim=True)  # rows sum to 1
        return weights @ x
