"""Figures of training: numpy in, plotly Figure out, in the style of components.figures.charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from plotly.graph_objects import Figure

from components.figures.palette import CURVES, SEQUENTIAL
from components.figures.style import GRID, LEGEND, LIGHT

MAX_POINTS = 300  # maximum points of the training loss; more are averaged in groups
DASHES, SYMBOLS = ("solid", "dash", "dot"), ("circle", "square", "diamond")


@dataclass(frozen=True)
class CurveNames:
    """Labels of the learning curve."""

    step: str = "step"
    loss: str = "loss, nats"
    training: str = "on what it trains on"
    held_back: str = "on what it never saw"
    guessing: str = "guessing"
    accuracy: str = "right, %"
    rate: str = "learning rate"


def learning_curve(
    losses: np.ndarray,
    rates: np.ndarray,
    eval_steps: np.ndarray,
    val_losses: np.ndarray,
    accuracies: np.ndarray | None,
    *,
    steps: int,
    guessing: float,
    shown: int | None = None,
    names: CurveNames = CurveNames(),
) -> Figure:
    """Loss over the steps; below it the accuracy, if any, and the learning rate.

    losses, rates: (n,), of the updates 1 to n. look_steps, val_losses, accuracies: (k,), of the evaluations; accuracies
    in 0..1. guessing: the loss of a uniform guess, in nats. shown: the step to mark. Raises ValueError if lengths
    differ.
    """
    if (
        len(losses) != len(rates)
        or len({len(eval_steps), len(val_losses), len(eval_steps if accuracies is None else accuracies)}) > 1
    ):
        raise ValueError("every update has a loss and a rate, every evaluation a step and its values")
    at = np.arange(1, len(losses) + 1)
    mean_at, mean_loss = grouped(at, MAX_POINTS), grouped(losses, MAX_POINTS)
    hover = f"{names.step} %{{x:.0f}}: %{{y:.4~g}}<extra></extra>"
    curve = {"type": "scatter", "mode": "lines", "hovertemplate": hover}
    dots = {"mode": "lines+markers", "marker": {"size": 5, "color": LIGHT["after"]}}
    strong = {"line": {"color": LIGHT["after"], "width": 2}, **dots}
    data = [
        curve
        | {"x": mean_at, "y": mean_loss, "name": names.training, "line": {"color": LIGHT["before"], "width": 1.5}},
        curve | strong | {"x": eval_steps, "y": _floats(val_losses), "name": names.held_back},
    ]
    hidden = {"showlegend": False, "customdata": None}
    if accuracies is not None:
        data.append(curve | strong | hidden | {"x": eval_steps, "y": 100 * _floats(accuracies), "yaxis": "y2"})
    changes = stairs(rates)
    thin = {"line": {"color": LIGHT["muted"], "width": 1.5}}
    data.append(curve | thin | hidden | {"x": at[changes], "y": _floats(rates[changes]), "yaxis": "y3"})
    domains = ((0.54, 1.0), (0.24, 0.44), (0.0, 0.14)) if accuracies is not None else ((0.28, 1.0), None, (0.0, 0.16))
    top = 1.08 * max(guessing, float(np.max(val_losses, initial=0)), float(np.max(mean_loss, initial=0)))
    layout: dict[str, Any] = {
        "template": {},
        "height": 420 if accuracies is not None else 340,
        "margin": {"l": 56, "r": 12, "t": 30, "b": 40},
        "xaxis": GRID | {"title": {"text": names.step}, "range": [0, steps], "anchor": "y3"},
        "yaxis": GRID | {"title": {"text": names.loss}, "domain": domains[0], "range": [0, top]},
        "yaxis3": GRID | {"title": {"text": names.rate}, "domain": domains[2], "rangemode": "tozero", "nticks": 3},
        "legend": LEGEND | {"font": {"size": 11}},
        "shapes": [_level(guessing, steps)] + ([] if shown is None else [_mark(shown)]),
        "annotations": [_note(names.guessing, steps, guessing)],
        "hovermode": "closest",
    }
    if domains[1] is not None:
        layout["yaxis2"] = GRID | {
            "title": {"text": names.accuracy},
            "domain": domains[1],
            "range": [0, 104],
            "tickvals": [0, 50, 99],
        }
    return Figure({"data": data, "layout": layout})


def grouped(values: np.ndarray, most: int) -> np.ndarray:
    """(n,) -> means of at most `most` adjacent groups whose sizes differ by at most one, float32."""
    n = len(values)
    if n <= most:
        return np.asarray(values, dtype=np.float32)
    starts = np.arange(most) * n // most
    sizes = np.diff([*starts, n])
    return (np.add.reduceat(np.asarray(values, dtype=np.float64), starts) / sizes).astype(np.float32)


def stairs(values: np.ndarray) -> np.ndarray:
    """Indices that a line needs: both ends, both sides of each jump, and evenly spaced ones."""
    n = len(values)
    jumps = np.flatnonzero(np.abs(np.diff(values)) > 0.05 * np.max(values, initial=0)) if n else np.array([], dtype=int)
    even = np.linspace(0, n - 1, min(n, 100), dtype=int)
    return np.unique(np.concatenate([even, jumps, jumps + 1])).astype(int)


@dataclass(frozen=True)
class ScalingLine:
    """One line of a scaling chart; lines of the same index share colour, dash and marker in all three charts."""

    name: str
    x: np.ndarray
    y: np.ndarray


def scaling_curves(
    lines: Sequence[ScalingLine], star: ScalingLine, *, x_title: str, y_title: str, upright: bool = False
) -> Figure:
    """Loss over a quantity, both axes logarithmic; `star` is a separate labelled point.

    upright: the lines are moments of training, early ones light, instead of models.
    """
    data = []
    for i, line in enumerate(lines):
        colour = SEQUENTIAL[3 + 4 * (i + 1) // len(lines)] if upright else CURVES[i % len(CURVES)]
        mark = SYMBOLS[i % len(SYMBOLS)]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": _floats(line.x),
                "y": _floats(line.y),
                "name": line.name,
                "line": {"color": colour.light, "width": 2, "dash": DASHES[i % len(DASHES)]},
                "marker": {"color": colour.light, "size": 6, "symbol": mark},
                "hovertemplate": "%{x:.3s}: %{y:.3f}",
            }
        )
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": _floats(star.x),
            "y": _floats(star.y),
            "name": star.name,
            "marker": {"color": LIGHT["accent"], "size": 12, "symbol": "star"},
            "hovertemplate": "%{x:.3s}: %{y:.3f}",
        }
    )
    ys = np.concatenate([*(line.y for line in lines), star.y])
    ticks = [tick for tick in (1, 1.5, 2, 3, 4, 6, 8, 10) if ys.min() * 0.9 <= tick <= ys.max() * 1.1]
    return Figure(
        {
            "data": data,
            "layout": {
                "template": {},
                "height": 320,
                "margin": {"l": 48, "r": 12, "t": 64, "b": 44},
                "xaxis": GRID | {"type": "log", "title": {"text": x_title}, "tickformat": "~s", "dtick": 1},
                "yaxis": GRID | {"type": "log", "title": {"text": y_title}, "tickvals": ticks},
                "legend": LEGEND | {"font": {"size": 11}},
                "hovermode": "closest",
            },
        }
    )


def _floats(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, dtype=np.float32)


def _level(y: float, steps: int) -> dict[str, Any]:
    line = {"color": LIGHT["muted"], "width": 1, "dash": "dot"}
    return {"type": "line", "x0": 0, "x1": steps, "y0": y, "y1": y, "line": line}


def _mark(step: int) -> dict[str, Any]:
    line = {"color": LIGHT["accent"], "width": 1.5}
    return {"type": "line", "x0": step, "x1": step, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def _note(text: str, steps: int, y: float) -> dict[str, Any]:
    place = {"x": steps, "y": y, "xanchor": "right", "yanchor": "top", "showarrow": False}
    return place | {"text": text, "font": {"size": 11, "color": LIGHT["muted"]}}
