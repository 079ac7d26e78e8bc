"""The state of the Activations tab."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from components.state.text import Text
from gpt.config import Activation


@dataclass(frozen=True, eq=False)
class Histogram:
    """Histogram of one layer's pre-activations at all positions in a text: n_read x n_ff values.

    Attributes:
        shares: Fraction of the values in each bin, shape (BINS,).
        edges: Bin edges, shape (BINS + 1,).
        n: Number of values.
        negative, outside: Fractions of values below zero and outside the bins.
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
    """Logits after a position with the model's own activation function and with a replacement, (vocab_size,) each."""

    text: Text
    position: int
    activation: Activation
    before: Tensor
    after: Tensor


@dataclass(frozen=True, eq=False)
class ActivationsState:
    """The evaluation point x, the replacement activation function, and the latest results."""

    x: float = 1.0
    activation: Activation = "relu"
    histogram: Histogram | None = None
    swap: Swap | None = None
