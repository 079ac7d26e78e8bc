"""Greedy generation."""

import torch
from torch import Tensor

from gpt.experiments.minimal.model import GPT


@torch.inference_mode()
def generate(model: GPT, idx: Tensor, n: int) -> Tensor:
    """(B, T) ids -> (B, T + n)."""
    for _ in range(n):
        context = idx[:, -model.config.block_size :]  # crop to the context
        logits = model(context)[:, -1]  # after the last token
        best = logits.argmax(dim=-1, keepdim=True)  # (B, 1)
        idx = torch.cat((idx, best), dim=1)
    return idx
