"""A checkpoint becomes a model ready to run, on a device and in a precision."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import torch

from gpt.checks import check_choice
from gpt.errors import GPTError
from gpt.inference.engine import Engine
from gpt.inference.packed_linear import pack
from gpt.inference.threads import multiplications_per_token, release_threads, threads_for
from gpt.inference.zero_gpu import on_zero_gpu
from gpt.model import GPT
from gpt.models.checkpoints import Checkpoint
from gpt.models.meta import meta_model
from gpt.tokenizer import Vocabulary

Precision = Literal["fp32", "bf16", "int8"]
DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}

_first = threading.Lock()


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

    @property
    def engine(self) -> Engine:
        """What writes with this model for everybody who holds it."""
        with _first:  # since Python 3.12, cached_property alone would make one for each who asks at the same moment
            return self._engine

    @cached_property
    def _engine(self) -> Engine:
        return Engine(self.model)


def best_device() -> torch.device:
    """CUDA where there is one, else Apple's MPS, else the CPU. The CPU on ZeroGPU: see `gpt.models.gpu_twin`."""
    if on_zero_gpu():
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def check_precision(precision: str) -> None:
    """Raise ValueError for a precision that models cannot be loaded in."""
    check_choice("precision", precision, get_args(Precision))


def memory_of(checkpoint: Checkpoint, precision: Precision, device: torch.device) -> int:
    """Bytes that a model takes in a precision. On a CPU a tied head is there twice: packed, and as rows to embed;
    all of it is, where a model stays as rows for a twin on a GPU."""
    config, dtype = checkpoint.config, DTYPES[precision]
    if device.type == "cpu" and on_zero_gpu():
        return 2 * checkpoint.n_bytes(dtype)
    twice = config.tie_weights and device.type == "cpu"
    return checkpoint.n_bytes(dtype) + (config.vocab_size * config.n_embd * dtype.itemsize if twice else 0)


def can_pack(precision: Precision, device: torch.device) -> bool:
    """Whether a model's matrices are packed, see `gpt.inference.packed_linear`.

    Not in float32 where oneDNN is missing, and never where a twin is made for a GPU.
    """
    kernels = precision != "fp32" or torch.backends.mkldnn.is_available()
    return device.type == "cpu" and kernels and not on_zero_gpu()


def build(
    name: str, checkpoint: Checkpoint, device: torch.device, precision: Precision, *, untrained: bool = False
) -> LoadedModel:
    """Make the model that a checkpoint describes; with random weights, always the same, if it is to be untrained."""
    packed = can_pack(precision, device)
    if precision == "int8" and not packed:
        place = "ZeroGPU" if on_zero_gpu() else device
        raise GPTError("precision.int8_device", device=place)
    dtype = torch.float32 if packed else DTYPES[precision]
    if untrained:
        model = GPT(checkpoint.config, generator=torch.Generator().manual_seed(0)).eval().to(dtype)
    else:
        model = read_packed(checkpoint, precision) if packed else checkpoint.build(dtype)
    if packed:
        pack(model, precision)
        release_threads()
    try:
        model.to(device)
    except torch.OutOfMemoryError:
        raise GPTError("memory.device", model=name, device=device) from None
    with torch.inference_mode(), threads_for(multiplications_per_token(model)):
        if not model(torch.zeros(1, 1, dtype=torch.long, device=device)).isfinite().all():
            raise GPTError("checkpoint.logits_not_finite", model=name)
    return LoadedModel(name, model, checkpoint.tokenizer, device, precision, checkpoint.layout)


def read_packed(checkpoint: Checkpoint, precision: Precision) -> GPT:
    """The model of a checkpoint with its blocks packed, each as soon as it is read: only one is there in float32.

    Raises ValueError as `Checkpoint.build`.
    """
    model = meta_model(checkpoint.config).eval()
    unpacked = max(sum(weight.numel() for weight in part.parameters()) for part in (model.h[0], model.wte))
    needed = memory_of(checkpoint, precision, torch.device("cpu")) + unpacked * torch.float32.itemsize
    checkpoint.need_memory(needed)
    for block in checkpoint.fill(model):
        pack(block, precision)
    return model
