"""One process of a training: its model, its optimizers, its share of each batch. Alone, or one of several."""

from __future__ import annotations

import importlib
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parallel import DistributedDataParallel

from gpt.errors import GPTError
from gpt.model import GPT
from gpt.models.loading import best_device
from gpt.tokenizer import Tokenizer
from gpt.training.evaluation import Score, score_stories
from gpt.training.recipe import Recipe, make_optimizers, set_rate


@dataclass(frozen=True)
class Process:
    """One of the `world` processes that train together: its number, its device, and whether it uses bf16 autocast."""

    device: torch.device
    bf16: bool = False
    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        """The one process that writes files and speaks."""
        return self.rank == 0

    def sum(self, *numbers: float) -> list[float]:
        """Each number summed over all processes, which all have to ask."""
        if self.world == 1:
            return list(numbers)
        totals = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(totals)
        return totals.tolist()

    def wait(self) -> None:
        """Go on only when all processes have come here."""
        self.sum(0.0)

    def autocast(self) -> torch.autocast:
        """Matrix products in bfloat16, if this process computes so."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bf16)


@contextmanager
def joined(precision: Literal["auto", "fp32", "bf16"] = "auto") -> Iterator[Process]:
    """This process, joined to the others if torchrun started it: NCCL between GPUs, Gloo between CPUs."""
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = best_device()
    if device.type == "cuda":
        index, n_devices = int(os.environ.get("LOCAL_RANK", 0)), torch.cuda.device_count()
        if index >= n_devices:
            raise GPTError("training.too_many_processes", n=n_devices)
        device = torch.device("cuda", index)
        torch.cuda.set_device(device)
    elif world > 1:
        device = torch.device("cpu")  # several processes cannot share Apple's GPU
    bf16 = has_bf16(device) if precision == "auto" else precision == "bf16"
    if world == 1:
        yield Process(device, bf16)
        return
    # The group's threads end with the last object that holds it; one that still lets go of a tensor while Python
    # ends takes the process down. This module would keep the group for ever if it were imported after its start.
    importlib.import_module("torch.distributed.nn.functional")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Process(device, bf16, rank, world)
    finally:
        dist.destroy_process_group()


def has_bf16(device: torch.device) -> bool:
    """True if the device multiplies bfloat16 by itself; elsewhere it is emulated, and slower than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    cpuinfo = Path("/proc/cpuinfo")
    if device.type != "cpu" or not cpuinfo.exists():
        return False
    return not {"avx512_bf16", "amx_bf16", "bf16"}.isdisjoint(cpuinfo.read_text(encoding="utf-8").split())


class LossOf(nn.Module):
    """The loss as a forward pass, which is what DistributedDataParallel and torch.compile wrap."""

    def __init__(self, model: GPT) -> None:
        super().__init__()
        self.model = model

    def forward(self, idx: Tensor, targets: Tensor) -> Tensor:
        return self.model.loss(idx, targets)


class Trainer:
    """The weights, the optimizers, and how far they have come.

    step: updates made. losses: of the updates since the last evaluation. best: lowest held-back loss so far.
    """

    def __init__(self, recipe: Recipe, n_vocab: int, process: Process, *, compiled: bool = False) -> None:
        if recipe.batch_size % process.world:
            raise GPTError("training.batch_size", batch_size=recipe.batch_size, n=process.world)
        self.recipe, self.process = recipe, process
        generator = torch.Generator().manual_seed(recipe.seed)
        self.model = GPT(recipe.model_config(n_vocab), generator=generator).to(process.device)
        self.optimizers = make_optimizers(self.model, recipe)
        self.loss_of: Any = LossOf(self.model)
        if process.world > 1:
            self.loss_of = DistributedDataParallel(self.loss_of)
        if compiled:
            self.loss_of = torch.compile(self.loss_of)
        self.step, self.best = 0, math.inf
        self.losses: list[float] = []
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Time since the run was begun, without the time between a stop and a resumption."""
        return time.monotonic() - self._began

    @property
    def n_tokens(self) -> int:
        """Tokens read so far, over all processes; those of the context count once per row."""
        return self.step * self.recipe.batch_size * self.recipe.block_size

    def update(self, rows: np.ndarray) -> float:
        """One update from the rows of all processes, (batch_size, block_size + 1) ids; returns their mean loss.

        Raises ValueError, before the weights are changed, if the loss or its gradient is not finite.
        """
        recipe, process = self.recipe, self.process
        self.model.train()
        torch.manual_seed(int(np.random.SeedSequence([recipe.seed, self.step, process.rank]).generate_state(1)[0]))
        batch = torch.from_numpy(rows[process.rank :: process.world]).long().to(process.device)
        set_rate(self.optimizers, recipe.rate(self.step))
        # On a CPU the plain kernel is the faster one at these sizes.
        kernel = sdpa_kernel([SDPBackend.MATH]) if process.device.type == "cpu" else nullcontext()
        with process.autocast(), kernel:
            loss = self.loss_of(batch[:, :-1], batch[:, 1:])
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        mean = process.sum(loss.item())[0] / process.world
        if not (math.isfinite(mean) and math.isfinite(norm)):
            raise self._blown_up()
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.losses.append(mean)
        return mean

    def score(self, tokenizer: Tokenizer, stories: list[str]) -> Score:
        """How well the weights of this moment predict the stories; every process takes a share of them."""
        self.model.eval()
        with self.process.autocast():
            mine = score_stories(self.model, tokenizer, stories[self.process.rank :: self.process.world])
        nats, n_tokens, n_bytes = self.process.sum(mine.nats, mine.n_tokens, mine.n_bytes)
        if not math.isfinite(nats):
            raise self._blown_up()
        return Score(nats, int(n_tokens), int(n_bytes))

    def state(self) -> dict[str, Any]:
        """Everything that `load` needs to go on as if there had been no stop.

        Raises ValueError if a weight is not a number, or too large for the half precision that models are saved in.
        """
        limit = torch.finfo(torch.float16).max
        if not all(parameter.detach().abs().max() <= limit for parameter in self.model.parameters()):
            raise self._blown_up()
        return {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "step": self.step,
            "best": self.best,
            "losses": self.losses,
            "seconds": self.seconds,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.best = state["step"], state["best"]
        self.losses = list(state.get("losses", ()))
        self._began = time.monotonic() - state.get("seconds", 0.0)

    def _blown_up(self) -> GPTError:
        names = ("adamw_lr", "muon_lr") if self.recipe.optimizer == "muon" else ("adamw_lr",)
        rates = ", ".join(f"{name} {getattr(self.recipe, name)}" for name in names)
        return GPTError("training.rates_too_high", step=self.step, rates=rates)
