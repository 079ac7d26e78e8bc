"""Activation functions and their derivatives, for the Activations tab and a lesson."""

from __future__ import annotations

from functools import lru_cache

import torch

from components.figures.lines import activation_curves
from components.i18n import t
from components.labels import ACTIVATIONS, decimal
from components.widgets.chart import Drawing
from gpt.config import Activation
from gpt.experiments.layers import activation_curve

SPAN = 3.0  # the charts show [-SPAN, SPAN]
POINTS = 241
DRAWN: tuple[Activation, ...] = ("gelu_tanh", "relu", "silu")  # the exact GELU would coincide with the tanh version


def curves_chart(x: float) -> Drawing:
    at = torch.tensor(float(x))
    grid = torch.cat((torch.linspace(-SPAN, SPAN, POINTS), at[None])).sort().values  # the legend shows the values at x
    curves = {name: activation_curve(name, grid) for name in DRAWN}
    here = {name: activation_curve(name, at) for name in DRAWN}
    figure = activation_curves(
        grid.numpy(),
        {ACTIVATIONS[name]: curve.y.numpy() for name, curve in curves.items()},
        {ACTIVATIONS[name]: curve.slope.numpy() for name, curve in curves.items()},
        at=at.item(),
        flat=flattest(),
    )
    values = {name: decimal(curve.y.item(), 4) for name, curve in here.items()}
    slopes = {f"d_{name}": decimal(curve.slope.item(), 4) for name, curve in here.items()}
    return figure, t("activations.values", x=decimal(x, 2), zero=decimal(flattest(), 4), **values, **slopes)


@lru_cache(maxsize=1)
def flattest() -> float:
    curve = activation_curve("gelu_tanh", torch.linspace(-1, 0, 100_001, dtype=torch.float64))
    return float(curve.x[curve.y.argmin()])
