"""Random numbers from torch's one generator, drawn by one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gpt.config import GPTConfig
from gpt.model import GPT

_alone = threading.Lock()  # torch's modules draw their first weights from a generator that all threads share


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, the same seed draws the same numbers; afterwards torch goes on as if nothing had been drawn."""
    with _alone, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def fresh_model(config: GPTConfig, seed: int) -> GPT:
    """A GPT with the first weights of this seed."""
    with seeded(seed):
        return GPT(config)
