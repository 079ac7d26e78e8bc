"""What the Activations tab consists of: its gradio components, and what it remembers of one visitor."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr
import numpy as np
from torch import Tensor

from components.state.text import Text
from gpt.config import Activation


@dataclass(frozen=True, eq=False)
class Histogram:
    """The pre-activations of one layer over all positions of a text, shape (n_read, ff_size) there.

    shares: (BINS,), of all values; edges: (BINS + 1,). n: how many values; negative, outside: shares of them.
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
    """What follows a position with the model's own activation and with another: probabilities, (vocab_size,) each.
    moved: their total variation distance."""

    text: Text
    position: int
    activation: Activation
    before: Tensor
    after: Tensor
    moved: float


@dataclass(frozen=True, eq=False)
class ActivationsState:
    """x: where the functions are evaluated; layer: of the histogram; activation: the one that is swapped in. histogram,
    swap: what was computed last."""

    x: float = 1.0
    layer: int = 0
    activation: Activation = "relu"
    histogram: Histogram | None = None
    swap: Swap | None = None

    def layer_of(self, text: Text | None) -> int:
        """The chosen layer, or the last one of a model that has fewer."""
        return self.layer if text is None else min(self.layer, text.config.n_layer - 1)


@dataclass(frozen=True)
class ActivationsComponents:
    """The gradio components of the tab."""

    x: gr.Slider
    layer: gr.Dropdown
    activation: gr.Radio
