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
ZERO_AT = 0.5  # where step 0 is on the logarithmic axis of steps
COPY = CURVES[1].light
DASHES, SYMBOLS = ("solid", "dash", "dot"), ("circle", "square", "diamond")


@dataclass(frozen=True)
class CurveNames:
    """Labels of the learning curve."""

    step: str = "step"
    loss: str = "loss, nats"
    training: str = "on what it trains on"
    held_back: str = "on what it never saw"
    copy: str = "on random tokens, repeated"
    guessing: str = "guessing"
    shares: str = "%"
    rate: str = "learning rate"


@dataclass(frozen=True)
class Share:
    """A line of shares over the evaluations. values: (k,), in 0..1. colour: a name of the palette."""

    name: str
    values: np.ndarray
    colour: str = "after"


def learning_curve(
    losses: np.ndarray,
    rates: np.ndarray,
    eval_steps: np.ndarray,
    val_losses: np.ndarray,
    shares: Sequence[Share] = (),
    *,
    steps: int,
    guessing: float,
    copy_losses: np.ndarray | None = None,
    shown: int | None = None,
    names: CurveNames = CurveNames(),
) -> Figure:
    """Loss over the steps, on a logarithmic axis; below it shares, if any, and the learning rate, if there are losses.

    losses, rates: (n,), of the updates 1 to n. eval_steps, val_losses, copy_losses: (k,), of the evaluations. guessing:
    the loss of a uniform guess, in nats. shown: the step to mark. Raises ValueError if lengths differ.
    """
    of_evaluations = [val_losses, *(share.values for share in shares), *([] if copy_losses is None else [copy_losses])]
    if len(losses) != len(rates) or any(len(values) != len(eval_steps) for values in of_evaluations):
        raise ValueError("every update has a loss and a rate, every evaluation a step and its values")
    at, looked_at = np.arange(1, len(losses) + 1), np.maximum(eval_steps, ZERO_AT).astype(np.float32)
    mean_at, mean_loss = log_grouped(at, MAX_POINTS), log_grouped(losses, MAX_POINTS)
    curve: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "hovertemplate": f"{names.step} %{{x:.0f}}: %{{y:.4~g}}<extra></extra>",
    }
    looked = curve | {"x": looked_at, "mode": "lines+markers"}
    data: list[dict[str, Any]] = []
    if len(losses):
        thin: dict[str, object] = {"line": {"color": LIGHT["before"], "width": 1.5}}
        data.append(curve | thin | {"x": mean_at, "y": mean_loss, "name": names.training})
    data.append(looked | _dotted(LIGHT["after"]) | {"y": _floats(val_losses), "name": names.held_back})
    if copy_losses is not None:
        data.append(looked | _dotted(COPY) | {"y": _floats(copy_losses), "name": names.copy})
    for i, share in enumerate(shares):
        style = _dotted(LIGHT[share.colour], DASHES[i % len(DASHES)])
        data.append(looked | style | {"y": 100 * _floats(share.values), "name": share.name, "yaxis": "y2"})
    if len(losses):
        changes = stairs(rates)
        thin = {"line": {"color": LIGHT["muted"], "width": 1.5}, "showlegend": False}
        data.append(curve | thin | {"x": at[changes], "y": _floats(rates[changes]), "yaxis": "y3"})
    highest = max(guessing, *(float(each["y"].max()) for each in data if "yaxis" not in each))
    layout = _layout(names, steps, 1.08 * highest, bool(shares), bool(len(losses)))
    layout["shapes"] = [_level(guessing)] + ([] if shown is None else [_mark(max(shown, ZERO_AT))])
    layout["annotations"] = [_note(names.guessing, guessing)]
    return Figure({"data": data, "layout": layout})


def _layout(names: CurveNames, steps: int, top: float, has_shares: bool, has_rates: bool) -> dict[str, Any]:
    """The panels from the top: loss, shares, rates."""
    ticks = [tick for tick in (1, 3, 10, 30, 100, 300, 1000, 3000) if tick <= steps]
    lowest = 0.24 if has_rates else 0.0
    layout: dict[str, Any] = {
        "template": {},
        "height": 380 if has_shares else 320,
        "margin": {"l": 56, "r": 12, "t": 8, "b": 40},
        "xaxis": GRID
        | {
            "title": {"text": names.step},
            "type": "log",
            "range": [np.log10(ZERO_AT) - 0.05, np.log10(max(steps, 2)) + 0.03],
            "tickvals": [ZERO_AT, *ticks],
            "ticktext": ["0", *(f"{tick:,}" for tick in ticks)],
            "anchor": "y3" if has_rates else "y2" if has_shares else "y",
        },
        "yaxis": GRID
        | {"title": {"text": names.loss}, "domain": [0.56 if has_shares else lowest + 0.04, 1.0], "range": [0, top]},
        "legend": LEGEND | {"font": {"size": 11}},
        "hovermode": "closest",
    }
    if has_shares:
        shares = {
            "title": {"text": names.shares},
            "domain": [lowest, 0.46],
            "range": [0, 104],
            "tickvals": [0, 50, 100],
        }
        layout["yaxis2"] = GRID | shares
    if has_rates:
        layout["yaxis3"] = GRID | {
            "title": {"text": names.rate},
            "domain": [0.0, 0.14],
            "rangemode": "tozero",
            "nticks": 3,
        }
    return layout


def _dotted(colour: str, dash: str = "solid") -> dict[str, Any]:
    return {"line": {"color": colour, "width": 2, "dash": dash}, "marker": {"size": 5, "color": colour}}


def log_grouped(values: np.ndarray, most: int) -> np.ndarray:
    """(n,) -> means of at most `most` adjacent groups, whose ends are evenly spaced on a log scale, float32."""
    n = len(values)
    if n <= most:
        return np.asarray(values, dtype=np.float32)
    starts = np.unique(np.geomspace(1, n + 1, most + 1).astype(int)[:-1]) - 1
    sizes = np.diff([*starts, n])
    return (np.add.reduceat(np.asarray(values, dtype=np.float64), starts) / sizes).astype(np.float32)


def stairs(values: np.ndarray) -> np.ndarray:
    """Indices that a line needs: both ends, both sides of each jump, and spaced ones, evenly and on a log scale."""
    n = len(values)
    if not n:
        return np.array([], dtype=int)
    jumps = np.flatnonzero(np.abs(np.diff(values)) > 0.05 * np.max(values, initial=0))
    spaced = np.concatenate([np.linspace(0, n - 1, min(n, 60)), np.geomspace(1, n, min(n, 40)) - 1]).astype(int)
    return np.unique(np.concatenate([spaced, jumps, jumps + 1])).astype(int)


@dataclass(frozen=True)
class ScalingLine:
    """One line of a scaling chart; lines of the same index share colour, dash and marker in all three charts."""

    name: str
    x: np.ndarray
    y: np.ndarray


def scaling_curves(
    lines: Sequence[ScalingLine],
    others: Sequence[ScalingLine],
    star: ScalingLine,
    *,
    x_title: str,
    y_title: str,
    upright: bool = False,
) -> Figure:
    """Loss over a quantity, both axes logarithmic; `star` is a separate labelled point.

    others: of another architecture, in the colours of the last lines, with open marks. upright: the lines are moments
    of training, early ones light, instead of models.
    """
    data = []
    for n, line in enumerate([*lines, *others]):
        i = n if n < len(lines) else n - len(others)
        colour = SEQUENTIAL[3 + 4 * (i + 1) // len(lines)] if upright else CURVES[i % len(CURVES)]
        mark, dash = SYMBOLS[i % len(SYMBOLS)], DASHES[i % len(DASHES)]
        if n >= len(lines):
            mark, dash = f"{mark}-open", "dot"
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": _floats(line.x),
                "y": _floats(line.y),
                "name": line.name,
                "line": {"color": colour.light, "width": 2, "dash": dash},
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
    ys = np.concatenate([*(line.y for line in (*lines, *others)), star.y])
    ticks = [tick for tick in (1, 1.5, 2, 3, 4, 6, 8, 10) if ys.min() * 0.9 <= tick <= ys.max() * 1.1]
    return Figure(
        {
            "data": data,
            "layout": {
                "template": {},
                "height": 320 + 40 * len(others),  # the legend is above the plot
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


def _level(y: float) -> dict[str, Any]:
    line = {"color": LIGHT["muted"], "width": 1, "dash": "dot"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line}


def _mark(step: float) -> dict[str, Any]:
    line = {"color": LIGHT["accent"], "width": 1.5}
    return {"type": "line", "x0": step, "x1": step, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def _note(text: str, y: float) -> dict[str, Any]:
    place = {"xref": "paper", "x": 1, "y": y, "xanchor": "right", "yanchor": "top", "showarrow": False}
    return place | {"text": text, "font": {"size": 11, "color": LIGHT["muted"]}}
