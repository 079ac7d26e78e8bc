"""A checkpoint becomes a model ready to run, on a device and in a precision."""

from __future__ import annotations

from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch

from gpt.checkpoints import Checkpoint
from gpt.checkpoints.hub import Progress
from gpt.checkpoints.vocabularies import Vocabulary
from gpt.model import GPT
from gpt.zero import on_zero_gpu

Precision = Literal["fp32", "bf16", "int8"]
DTYPES: dict[str, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model ready to run and the vocabulary it speaks. Shared between visitors: never change it.

    layout: whose checkpoint format it came in, for people.
    """

    name: str
    model: GPT
    tokenizer: Vocabulary
    device: torch.device
    precision: Precision
    layout: str = ""


def best_device() -> torch.device:
    """CUDA where there is one, else Apple's MPS, else the CPU; ZeroGPU lends one to a twin, see `gpt.lent`."""
    if on_zero_gpu():
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def check_precision(precision: str) -> None:
    """Raise ValueError for a precision that models cannot be loaded in."""
    if precision not in get_args(Precision):
        raise ValueError(f"precision must be one of {', '.join(get_args(Precision))}, not {precision!r}")
    if precision not in DTYPES:
        raise ValueError(f"precision {precision} is not available yet: choose fp32 or bf16")


def build(
    name: str, checkpoint: Checkpoint, device: torch.device, precision: Precision, *, untrained: bool = False
) -> LoadedModel:
    """Make the model that a checkpoint describes; with random weights, always the same, if it is to be untrained."""
    if untrained:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = GPT(checkpoint.config).eval().to(DTYPES[precision])
    else:
        model = checkpoint.build(DTYPES[precision])
    try:
        model.to(device)
    except torch.OutOfMemoryError:
        raise ValueError(f"{name} does not fit in the memory of {device}: choose a smaller model") from None
    return LoadedModel(name, model, checkpoint.tokenizer, device, precision, checkpoint.layout)


@dataclass(eq=False)
class Load:
    """One load, and how far its download is; everybody who wants the model waits for the same one."""

    result: Future[LoadedModel] = field(default_factory=Future)
    bytes_done: int = 0
    bytes_total: int = 0

    def report(self, done: int, total: int) -> None:
        self.bytes_done, self.bytes_total = done, total

    def wait(self, progress: Progress | None) -> LoadedModel:
        """The model once it is there. progress is called ten times a second, in the thread that waits."""
        while progress is not None and not self.result.done():
            if self.bytes_total:
                progress(self.bytes_done, self.bytes_total)
            wait([self.result], timeout=0.1)
        loaded = self.result.result()
        if progress is not None and self.bytes_total:
            progress(self.bytes_total, self.bytes_total)
        return loaded
