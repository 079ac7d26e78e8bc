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
        {ACTIVATIONS[name]: y.numpy() for name, (y, _) in curves.items()},
        {ACTIVATIONS[name]: slope.numpy() for name, (_, slope) in curves.items()},
        at=at.item(),
        flat=flattest(),
    )
    values = {name: decimal(y.item(), 4) for name, (y, _) in here.items()}
    slopes = {f"d_{name}": decimal(slope.item(), 4) for name, (_, slope) in here.items()}
    return figure, t("activations.values", x=decimal(x, 2), zero=decimal(flattest(), 4), **values, **slopes)


@lru_cache(maxsize=1)
def flattest() -> float:
    x = torch.linspace(-1, 0, 100_001, dtype=torch.float64)
    return float(x[activation_curve("gelu_tanh", x)[0].argmin()])
