"""What a watched training run records: losses, and evaluations with snapshots of the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from torch import Tensor

from gpt.training.dataset import Sample

State = Literal["waiting", "training", "paused", "finished", "cancelled", "diverged", "crashed"]
ENDED: tuple[State, ...] = ("finished", "cancelled", "diverged", "crashed")


@dataclass(frozen=True)
class LossPoint:
    """One update: the loss before it, in nats, and its learning rate."""

    step: int
    loss: float
    rate: float


@dataclass(frozen=True)
class Evaluation:
    """The model after `step` updates, on examples that are not trained on.

    attn_weights: (n_layer, n_head, T, T) float16, of the dataset's example. weights: the snapshot, see
    `gpt.training.snapshots.pack_weights`.
    """

    step: int
    val_loss: float
    accuracy: float | None
    samples: tuple[Sample, ...]
    attn_weights: np.ndarray
    weights: Mapping[str, Tensor] = field(default_factory=dict, repr=False)

    @cached_property
    def n_bytes(self) -> int:
        """Bytes of the attention weights and of the snapshot."""
        return self.attn_weights.nbytes + sum(tensor.nbytes for tensor in self.weights.values())


@dataclass(frozen=True)
class RunProgress:
    """A run at one moment; "finished" before its last step if the time limit was reached.

    seconds: since it started, pauses included. paused_seconds: of the pauses that have ended. rate_factor: of the
    recipe's learning rates. queue_position: 1 for the next run to start, 0 for a run that is not queued.
    """

    state: State
    step: int
    steps: int
    seconds: float
    paused_seconds: float
    rate_factor: float
    losses: tuple[LossPoint, ...]
    evaluations: tuple[Evaluation, ...]
    queue_position: int = 0

    @property
    def ended(self) -> bool:
        """Whether the state is final."""
        return self.state in ENDED
