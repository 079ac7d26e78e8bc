"""Repeat a textbook's experiment with an untrained GPT-2 (124M), and compare the results with the printed values.

Source: chapter 4 of Raschka, "Build a Large Language Model (From Scratch)" (2024).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import torch
from torch import Tensor, nn

from gpt.experiments.initialisation import shortcut_gradients
from gpt.experiments.layers import linear_relu_rows
from gpt.experiments.random_models import MemoryInUse
from gpt.experiments.shapes import UNTIED_124M, count_parameters
from gpt.generate import generate_greedy
from gpt.layers import seeded
from gpt.model import GPT
from gpt.models.memory import free_memory
from gpt.tokenizer import gpt2_tokenizer
from gpt.trace import Trace

SEED = 123
BATCH = ("Every effort moves you", "Every day holds a")
PROMPT = "Hello, I am"
PRINTED: dict[str, tuple[float, ...]] = {
    "batch": (6109, 3626, 6100, 345, 6109, 1110, 6622, 257),
    "prompt": (15496, 11, 314, 716),
    "means": (0.1324, 0.2170),
    "variances": (0.0231, 0.0398),
    "without": (0.00020173587, 0.00012011161, 0.00071520417, 0.0013988739, 0.0050496464),
    "with": (0.22169793, 0.20694107, 0.32896996, 0.26657325, 1.3258542),
    "parameters": (163_009_536,),
    "tied": (124_412_160,),
    "mebibytes": (621.83,),
    "shape": (2, 4, 50257),
    "logits": (0.3613, 0.4222, -0.0711),
    "tokens": (27018, 24086, 47843, 30961, 42348, 7267),
}


def agrees(name: str, computed: Sequence[float]) -> bool:
    """Return whether a value is the printed one: integers exactly, other numbers to within a factor of 1e-6."""
    pairs = zip(computed, PRINTED[name], strict=True)
    return all(a == b if isinstance(b, int) else math.isclose(a, b, rel_tol=1e-6) for a, b in pairs)


def run_notebook() -> Iterator[tuple[str, tuple[float, ...]]]:
    """Compute each value of PRINTED, in the same order and rounded in the same way. Yields its name and numbers.

    The model needs 622 MiB for a few seconds. Raises ValueError if that much memory is not free.
    """

    def rounded(values: Tensor) -> tuple[float, ...]:
        return tuple(round(number, 4) for number in values.tolist())

    encode = gpt2_tokenizer().encode
    batch, prompt = [encode(text) for text in BATCH], encode(PROMPT)
    yield "batch", (*chain(*batch),)
    yield "prompt", (*prompt,)
    rows = linear_relu_rows(seed=SEED)
    yield "means", rounded(rows.mean(dim=1))
    yield "variances", rounded(rows.var(dim=1))
    for name, gradients in zip(("without", "with"), shortcut_gradients(seed=SEED), strict=True):
        yield name, (*gradients,)
    n_parameters = count_parameters(UNTIED_124M)
    yield "parameters", (n_parameters,)
    yield "tied", (count_parameters(replace(UNTIED_124M, tie_weights=True)),)
    n_bytes = 4 * n_parameters
    yield "mebibytes", (round(n_bytes / 2**20, 2),)
    if free_memory() < 1.25 * n_bytes:
        raise MemoryInUse(n_bytes)
    with torch.inference_mode():
        model = GPT(UNTIED_124M, generator=torch.Generator())
        with seeded(SEED):
            for module in model.modules():
                if isinstance(module, nn.Embedding | nn.Linear):
                    module.reset_parameters()  # as PyTorch initialises them
            logits = model(torch.tensor(batch), trace=Trace())  # (2, 4, vocab_size)
        yield "shape", (*logits.shape,)
        yield "logits", rounded(logits[0, 0, :3])
        new = generate_greedy(model.eval(), torch.tensor([prompt]), len(PRINTED["tokens"]))[0, len(prompt) :]
        yield "tokens", (*new.tolist(),)
