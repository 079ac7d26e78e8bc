"""The processes of a training run: one process, or several under torchrun."""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
import torch.distributed as dist

from gpt.errors import GPTError
from gpt.inference.packed_weights import has_bfloat16
from gpt.models.loading import best_device


@dataclass(frozen=True)
class Process:
    """One of `world_size` processes that train together. bf16: whether to autocast to bfloat16."""

    device: torch.device
    bf16: bool = False
    rank: int = 0
    world_size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def all_reduce(self, *numbers: float) -> list[float]:
        """Sum each number over all processes. Every process must call this."""
        if self.world_size == 1:
            return list(numbers)
        totals = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(totals)
        return list(totals.tolist())

    def barrier(self) -> None:
        """Wait until every process has called this."""
        self.all_reduce(0.0)

    def autocast(self) -> torch.autocast:
        """Return the autocast context, which computes matrix products in bfloat16 if `bf16` is set."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bf16)


@contextmanager
def join_processes(precision: Literal["auto", "fp32", "bf16"] = "auto") -> Iterator[Process]:
    """Yield this process. If torchrun started it, it joins a process group: NCCL between GPUs, Gloo between CPUs.

    Raises ValueError if there are more processes than GPUs.
    """
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = best_device()
    if device.type == "cuda":
        index, n_devices = int(os.environ.get("LOCAL_RANK", 0)), torch.cuda.device_count()
        if index >= n_devices:
            raise GPTError("training.too_many_processes", n=n_devices)
        device = torch.device("cuda", index)
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
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if platform.machine().lower() in ("aarch64", "arm64"):
        return has_bfloat16()
    return torch.cpu._is_avx512_bf16_supported()  # without these, oneDNN emulates bfloat16 products
