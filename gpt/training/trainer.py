"""Training: its processes, update step and optimizers, for `python -m gpt.training`, live runs and experiments."""

from __future__ import annotations

import importlib
import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from gpt.errors import GPTError
from gpt.inference.packed_weights import has_bfloat16
from gpt.layers import seeded
from gpt.model import GPT
from gpt.models.loading import best_device
from gpt.tokenizer import Vocabulary
from gpt.training.evaluation import Score, score_stories
from gpt.training.recipe import Recipe

NEWTON_SCHULZ = (3.4445, -4.775, 2.0315)  # coefficients of the quintic iteration in Jordan's code
ITERATIONS = 5


@dataclass(frozen=True)
class Process:
    """One of `world_size` processes that train together; rank 0 writes files and prints.

    bf16: whether `autocast` computes matrix products in bfloat16.
    """

    device: torch.device
    bf16: bool = False
    rank: int = 0
    world_size: int = 1

    def all_reduce(self, *numbers: float) -> list[float]:
        """Sum each number over all processes. Every process must call this."""
        if self.world_size == 1:
            return list(numbers)
        totals = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(totals)
        return list(totals.tolist())

    def average(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its mean over all processes. Every process must call this."""
        if self.world_size > 1:
            for tensor in tensors:
                dist.all_reduce(tensor)
                tensor /= self.world_size

    def autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bf16)


@contextmanager
def join_processes(precision: Literal["auto", "fp32", "bf16"] = "auto") -> Iterator[Process]:
    """Yield this process. If torchrun started it, it joins a process group: NCCL between GPUs, Gloo between CPUs."""
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = best_device()
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    elif world_size > 1:
        device = torch.device("cpu")  # several processes cannot share Apple's GPU
    bf16 = has_bf16(device) if precision == "auto" else precision == "bf16"
    if world_size == 1:
        yield Process(device, bf16)
        return
    # A process group that is still referenced when Python exits can crash the process. This import would keep a
    # reference if it first ran after the group was created.
    importlib.import_module("torch.distributed.nn.functional")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Process(device, bf16, rank, world_size)
    finally:
        dist.destroy_process_group()


def has_bf16(device: torch.device) -> bool:
    """Return whether the device has bfloat16 instructions. Elsewhere bfloat16 is emulated and slower than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    is_arm = platform.machine().lower() in ("aarch64", "arm64")
    # oneDNN emulates bfloat16 products on CPUs with AVX-512 but without its bfloat16 instructions
    return device.type == "cpu" and (has_bfloat16() if is_arm else torch.cpu._is_avx512_bf16_supported())


class Batch(NamedTuple):
    """Training rows. idx: (B, T) ids. targets: (B, T), the ids that follow; -100 where no loss is computed."""

    idx: Tensor
    targets: Tensor

    @classmethod
    def of_rows(cls, rows: Tensor | np.ndarray) -> Batch:
        """Create a batch from rows (B, T + 1). Every id except the first is a target."""
        ids = torch.as_tensor(rows).long()
        return cls(ids[:, :-1], ids[:, 1:])


class Trainer:
    """A model, its optimizers and its training progress. Between updates, the model is in evaluation mode.

    step: number of updates so far. losses: losses of the updates since the last evaluation. best: lowest held-back loss
    so far.
    Raises ValueError if batch_size is not a multiple of the number of processes.
    """

    def __init__(self, model: GPT, recipe: Recipe, process: Process | None = None, *, compiled: bool = False) -> None:
        self.process = process or Process(torch.device("cpu"))
        if recipe.batch_size % self.process.world_size:
            raise GPTError("training.batch_size", batch_size=recipe.batch_size, n=self.process.world_size)
        self.recipe = recipe
        self.model = model.to(self.process.device).eval()
        self.optimizers = make_optimizers(self.model, recipe)
        self._loss = torch.compile(self.model.loss) if compiled else self.model.loss
        self.step, self.best = 0, math.inf
        self.losses: list[float] = []
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Training time in seconds, excluding any time between stopping and resuming."""
        return time.monotonic() - self._began

    @property
    def n_tokens(self) -> int:
        return self.step * self.recipe.batch_size * self.recipe.block_size

    def update(self, batch: Batch, rate_factor: float = 1.0) -> float:
        """Make one update on a batch split among the processes. Returns the mean loss before the update, in nats.

        rate_factor: multiplies the recipe's learning rates. Dropout depends on the recipe's seed, the step and the
        rank. Raises ValueError, without changing the weights, if the loss or its gradient is not finite.
        """
        recipe, process = self.recipe, self.process
        for group in (group for optimizer in self.optimizers for group in optimizer.param_groups):
            group["lr"] = group["full_lr"] * rate_factor * recipe.lr_factor(self.step)
        mine = slice(process.rank, None, process.world_size)
        idx, targets = (rows[mine].to(process.device) for rows in batch)
        seed = int(np.random.SeedSequence([recipe.seed, self.step, process.rank]).generate_state(1)[0])
        dropout_seed = seeded(seed, process.device) if recipe.dropout else nullcontext()
        self.model.train()
        with torch.enable_grad(), process.autocast(), dropout_seed:
            loss = self._loss(idx, targets)
        self.model.eval()
        loss.backward()
        process.average(parameter.grad for parameter in self.model.parameters() if parameter.grad is not None)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        mean = process.all_reduce(loss.item())[0] / process.world_size
        self._check_finite(mean, norm.item())
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.losses.append(mean)
        return mean

    @torch.inference_mode()
    def loss(self, batch: Batch) -> float:
        """Return the current weights' mean loss on a batch, in nats. Raises ValueError if it is not finite."""
        idx, targets = (rows.to(self.process.device) for rows in batch)
        loss = self.model.loss(idx, targets).item()
        self._check_finite(loss)
        return loss

    def score(self, tokenizer: Vocabulary, stories: list[str]) -> Score:
        """Score the current weights on stories. The processes share the work.

        Raises ValueError if the loss is not finite.
        """
        with self.process.autocast():
            mine = score_stories(self.model, tokenizer, stories[self.process.rank :: self.process.world_size])
        nats, n_tokens, n_bytes = self.process.all_reduce(mine.nats, mine.n_tokens, mine.n_bytes)
        self._check_finite(nats)
        return Score(nats, int(n_tokens), int(n_bytes))

    def state(self) -> dict[str, Any]:
        """Return the state for `load`. A resumed run gives the same result as an uninterrupted one.

        Raises ValueError if a weight is not finite, or too large for half precision (the format of saved models).
        """
        limit = torch.finfo(torch.float16).max
        if not all(parameter.detach().abs().max() <= limit for parameter in self.model.parameters()):
            self._check_finite(math.inf)
        return {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "step": self.step,
            "best": self.best,
            "losses": self.losses,
            "seconds": self.seconds,
        }

    def load(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.best, self.losses = state["step"], state["best"], [*state["losses"]]
        self._began = time.monotonic() - state["seconds"]

    def _check_finite(self, *values: float) -> None:
        if not all(map(math.isfinite, values)):
            names = ("adamw_lr", "muon_lr") if self.recipe.optimizer == "muon" else ("adamw_lr",)
            rates = ", ".join(f"{name} {getattr(self.recipe, name)}" for name in names)
            raise GPTError("training.rates_too_high", step=self.step, rates=rates)


def make_optimizers(model: GPT, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Create Muon for the block matrices and AdamW for embeddings, norms and biases, or AdamW for everything.

    Each group's "full_lr" is its highest learning rate.
    """
    matrices = [p for p in model.h.parameters() if p.dim() == 2]
    chosen = set(map(id, matrices)) if recipe.optimizer == "muon" else set()
    rest = [p for p in model.parameters() if id(p) not in chosen]
    groups = [
        {"params": [p for p in rest if p.dim() == 2], "weight_decay": recipe.adamw_weight_decay},
        {"params": [p for p in rest if p.dim() < 2], "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(groups, lr=recipe.adamw_lr, betas=(0.9, recipe.adamw_beta2))
    optimizers: list[torch.optim.Optimizer] = [adamw]
    if chosen:
        optimizers.append(Muon(matrices, recipe.muon_lr, recipe.muon_weight_decay))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["full_lr"] = group["lr"]
    return optimizers


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
        for group in self.param_groups:
            rate, momentum = group["lr"], group["momentum"]
            for weight in group["params"]:
                state = self.state[weight]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(weight)
                average = state["momentum_buffer"].lerp_(weight.grad, 1 - momentum)
                step = orthogonal(weight.grad.lerp(average, momentum))
                weight.mul_(1 - rate * group["weight_decay"])
                weight.add_(step, alpha=-rate * 0.2 * math.sqrt(max(weight.shape)))
