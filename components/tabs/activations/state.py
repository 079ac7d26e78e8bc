"""The state of the Activations tab."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from components.state.text import Text
from gpt.config import Activation


@dataclass(frozen=True, eq=False)
class Histogram:
    """The pre-activations of one layer over all positions of a text, (n_read, n_ff) values.

    shares: (BINS,), of all values; edges: (BINS + 1,). n: number of values; negative, outside: shares of them.
    """

    text: Text
    layer: int
    shares: np.ndarray
    edges: np.ndarray
    n: int
    negative: float
    outside: float
    mean: float
    std: float


@dataclass(frozen=True, eq=False)
class Swap:
    """Predictions after a position with the model's own activation function and with another, (vocab_size,) each.
    moved: their total variation distance."""

    text: Text
    position: int
    activation: Activation
    before: Tensor
    after: Tensor
    moved: float


@dataclass(frozen=True, eq=False)
class ActivationsState:
    """x: the point of evaluation; activation: the replacement. histogram, swap: the newest results."""

    x: float = 1.0
    activation: Activation = "relu"
    histogram: Histogram | None = None
    swap: Swap | None = None
