"""The Muon optimizer, which makes all singular values of each momentum update approximately equal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

NEWTON_SCHULZ = (3.4445, -4.775, 2.0315)  # coefficients of the quintic iteration in Jordan's code
ITERATIONS = 5


def orthogonal(matrix: Tensor) -> Tensor:
    """Move the singular values of a matrix (m, n) close to 1 (0.5 to 1.5) by Newton-Schulz iteration."""
    a, b, c = NEWTON_SCHULZ
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    x = wide / wide.norm().clamp(min=1e-7)
    for _ in range(ITERATIONS):
        square = x @ x.T
        x = torch.addmm(x, torch.addmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x if wide is matrix else x.T


class Muon(torch.optim.Optimizer):
    """Muon with Nesterov momentum, for matrices. lr: learning rate, scaled to match AdamW's step size.

    Source: Jordan et al. (2024), with the step size of arXiv 2502.16982. Equivalent to `torch.optim.Muon` with
    `adjust_lr_fn="match_rms_adamw"`, which is not its default, except that it computes in the dtype of the weights.
    `torch.optim.Muon` computes in bfloat16, which is many times slower on CPUs without bfloat16 instructions.
    """

    def __init__(self, params: Iterable[Any], lr: float, weight_decay: float, momentum: float = 0.95) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update the parameters from their gradients."""
        for group in self.param_groups:
            rate, momentum = group["lr"], group["momentum"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(weight)
                average = state["momentum_buffer"].lerp_(weight.grad, 1 - momentum)
                step = orthogonal(weight.grad.lerp(average, momentum))
                weight.mul_(1 - rate * group["weight_decay"])
                weight.add_(step, alpha=-rate * 0.2 * math.sqrt(max(weight.shape)))
