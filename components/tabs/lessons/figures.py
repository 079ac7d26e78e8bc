"""Figures of the lessons: numpy in, plotly Figure out, in the style of components.figures.charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from plotly.graph_objects import Figure

from components.figures.palette import CURVES, HEAD_HUES, MONO
from components.figures.style import GRID_ZERO, LEGEND, LIGHT, QUIET, escape

_HEIGHT = 300
_MARGIN = {"l": 56, "r": 12, "t": 32, "b": 44}
_DASHES = ("solid", "dash", "dot")


def bar_groups(
    names: Sequence[str], groups: Mapping[str, np.ndarray], *, y_title: str, x_title: str = "", log: bool = False
) -> Figure:
    """At most four groups of vertical bars. Each group has the shape (len(names),).

    log: a logarithmic axis without bars for 0. Raises ValueError if the lengths differ.
    """
    for name, values in groups.items():
        if len(values) != len(names):
            raise ValueError(f"{len(names)} names need as many bars, not {len(values)} of {name}")
    colours = [LIGHT["before"], LIGHT["after"]] if len(groups) == 2 else [LIGHT["after"]]
    if len(groups) > 2:
        colours = [pair.light for pair in (*CURVES, HEAD_HUES["same_token"])]
    data = [
        {
            "type": "bar",
            "name": escape(name),
            "x": list(range(len(names))),
            "y": np.asarray(values, dtype=np.float32),
            "marker": {"color": colour},
            "hovertemplate": "%{y:.4~g}",
        }
        for (name, values), colour in zip(groups.items(), colours, strict=False)
    ]
    ticks = {"tickvals": list(range(len(names))), "ticktext": [escape(name) for name in names]}
    axis = QUIET | ticks | {"title": {"text": escape(x_title)}, "tickfont": {"family": MONO}, "automargin": True}
    upright = GRID_ZERO | {"title": {"text": escape(y_title)}} | (_log_axis() if log else {})
    return _figure(data, axis, upright, legend=len(groups) > 1)


def lines(
    x: np.ndarray,
    curves: Mapping[str, np.ndarray],
    *,
    x_title: str,
    y_title: str,
    at: float | None = None,
    log: bool = False,
) -> Figure:
    """At most three curves over x, shape (N,) each, distinguished by hue and dash; at: a vertical line."""
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers" if len(x) <= 40 else "lines",
            "name": escape(name),
            "x": np.asarray(x, dtype=np.float32),
            "y": np.asarray(values, dtype=np.float32),
            "line": {"color": pair.light, "dash": dash, "width": 2, "simplify": False},
            "marker": {"size": 5},
            "hovertemplate": "%{y:.4~g}",
        }
        for (name, values), pair, dash in zip(curves.items(), CURVES, _DASHES, strict=False)
    ]
    axis = GRID_ZERO | {"title": {"text": escape(x_title)}}
    upright = GRID_ZERO | {"title": {"text": escape(y_title)}} | (_log_axis() if log else {"rangemode": "tozero"})
    figure = _figure(data, axis, upright, legend=len(curves) > 1)
    if at is not None:
        line = {"color": LIGHT["accent"], "width": 1.5}
        shape = {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": line}
        figure.update_layout(shapes=[shape])
    return figure


def spikes(values: np.ndarray, *, x_title: str, y_title: str) -> Figure:
    """Many thin adjacent bars, shape (N,), such as the neurons of a layer."""
    bars = {
        "type": "bar",
        "x": list(range(len(values))),
        "y": np.asarray(values, dtype=np.float32),
        "width": 1,
        "marker": {"color": LIGHT["after"], "line": {"width": 0}},
        "hovertemplate": f"{escape(x_title)} %{{x}}<br>{escape(y_title)} %{{y:.4~g}}<extra></extra>",
    }
    axis = QUIET | {"title": {"text": escape(x_title)}, "range": [-0.5, len(values) - 0.5]}
    return _figure([bars], axis, GRID_ZERO | {"title": {"text": escape(y_title)}}, legend=False)


def _figure(data: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any], *, legend: bool) -> Figure:
    layout = {
        "template": {},
        "height": _HEIGHT,
        "margin": _MARGIN if legend else _MARGIN | {"t": 8},
        "barmode": "group",
        "bargap": 0.3,
        "xaxis": x,
        "yaxis": y,
        "legend": LEGEND,
        "showlegend": legend,
        "hovermode": "x unified" if legend else "closest",
    }
    return Figure({"data": data, "layout": layout})


def _log_axis() -> dict[str, Any]:
    return {"type": "log", "exponentformat": "power", "dtick": 1}
