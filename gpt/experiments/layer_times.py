"""The time of each part of a model in a forward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter

import torch
from torch import Tensor

from gpt.experiments.speed import check_not_empty, synchronize
from gpt.model import GPT
from gpt.trace import Trace


@dataclass(frozen=True)
class LayerTimes:
    """Seconds of one forward pass; their sum is the whole pass.

    embedding: token and position embeddings. attention, feed_forward: of each block, with the norm before and the
    addition to the residual stream after it, n_layer numbers. head: the final norm and the logits after the last token.
    """

    embedding: float
    attention: tuple[float, ...]
    feed_forward: tuple[float, ...]
    head: float

    @property
    def total(self) -> float:
        """The time of the whole pass."""
        return self.embedding + sum(self.attention) + sum(self.feed_forward) + self.head


@dataclass
class Clock(Trace):
    """Notes when each block starts, is past its attention, and ends; stores no activation."""

    attention: bool = False
    times: list[float] = field(default_factory=list)

    def record(self, layer: int | None, name: str, value: Tensor) -> None:
        if name in ("resid_pre", "resid_mid") or (name == "resid_post" and layer == len(self.layers) - 1):
            synchronize(value.device)
            self.times.append(perf_counter())


@torch.inference_mode()
def measure_layers(model: GPT, ids: Sequence[int], repeats: int) -> Iterator[LayerTimes]:
    """Time forward passes that read a whole text and predict the next token, after one that is not counted.

    A GPU is waited for after each part, so there a pass takes longer than in generation. Raises ValueError for an empty
    text and for one that does not fit block_size.
    """
    check_not_empty(ids)
    idx = torch.tensor([list(ids)], device=model.device)  # (1, T)
    timed_pass(model, idx)
    for _ in range(repeats):
        yield timed_pass(model, idx)


def timed_pass(model: GPT, idx: Tensor) -> LayerTimes:
    """The times of one pass over a text (1, T)."""
    clock = Clock()
    synchronize(idx.device)
    began = perf_counter()
    model.logits(model.hidden_states(idx, trace=clock)[:, -1])
    synchronize(idx.device)
    marks = [began, *clock.times, perf_counter()]
    seconds = [after - before for before, after in pairwise(marks)]
    return LayerTimes(seconds[0], tuple(seconds[1:-1:2]), tuple(seconds[2:-1:2]), seconds[-1])
