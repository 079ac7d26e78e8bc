"""Seed torch functions that take no generator, such as dropout."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_global_generator = threading.Lock()


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch's global generators for the CPU and `device` inside the block, and restore them afterwards.

    Threads share these generators, so only one block runs at a time.
    """
    device = torch.device(device)
    gpus = [device] if device.type == "cuda" else []
    with _global_generator, torch.random.fork_rng(gpus):
        if gpus:
            torch.manual_seed(seed)
        else:
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would also seed the GPUs
        yield
