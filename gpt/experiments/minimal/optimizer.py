"""AdamW, the optimizer that trains GPTs."""

from collections.abc import Iterable

import torch
from torch import nn


class AdamW:
    """Updates each parameter from two running means of its gradient."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, decay: float = 0.01) -> None:
        self.parameters = list(parameters)
        self.lr, self.decay, self.n = lr, decay, 0
        self.means = [torch.zeros_like(p) for p in self.parameters]
        self.squares = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self) -> None:
        self.n += 1
        for p, mean, square in zip(self.parameters, self.means, self.squares, strict=True):
            if p.grad is None:
                continue
            mean.lerp_(p.grad, 0.1)  # where the gradient points
            square.lerp_(p.grad**2, 0.001)  # how large it usually is
            m, s = mean / (1 - 0.9**self.n), square / (1 - 0.999**self.n)  # both started at 0
            p.mul_(1 - self.lr * self.decay)  # weight decay
            p.sub_(self.lr * m / (s.sqrt() + 1e-8))

    def zero_grad(self) -> None:
        for p in self.parameters:
            p.grad = None
