"""Cross-entropy: how much the next tokens surprise the model."""

import torch
from torch import Tensor, nn


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """logits (N, vocab_size), targets (N,) -> mean loss in nats."""
    log_p = logits.log_softmax(dim=-1)  # finite even where p rounds to 0
    return -log_p[torch.arange(len(targets)), targets].mean()


def loss(model: nn.Module, ids: Tensor) -> Tensor:
    """(B, T) ids: every token except the first is a target."""
    idx, targets = ids[:, :-1], ids[:, 1:]
    logits = model(idx)  # (B, T - 1, vocab_size)
    return cross_entropy(logits.flatten(0, 1), targets.flatten())
