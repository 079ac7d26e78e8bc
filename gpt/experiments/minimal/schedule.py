"""The learning rate during training, and a limit on the gradient."""

import math
from collections.abc import Iterable

import torch
from torch import nn


class Schedule:
    """Linear warm-up, then a cosine from `high` down to `low`."""

    def __init__(self, high: float, low: float, warmup: int, steps: int) -> None:
        self.high, self.low, self.warmup, self.steps = high, low, warmup, steps

    def rate(self, step: int) -> float:
        """Return the learning rate for `step`, counted from 0."""
        if step < self.warmup:
            return self.high * (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.low + (self.high - self.low) * (1 + math.cos(math.pi * min(done, 1))) / 2


@torch.no_grad()
def clip_gradient(parameters: Iterable[nn.Parameter], most: float = 1.0) -> float:
    """Limit the joint norm of all gradients to `most`. Returns the norm before clipping."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = math.sqrt(sum(float((g**2).sum()) for g in gradients))
    for g in gradients:
        g.mul_(min(1.0, most / (norm + 1e-6)))
    return norm
