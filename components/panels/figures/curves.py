"""Curves and histograms: numpy in, plotly Figure out, in the style of `components.figures.charts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from plotly.graph_objects import Figure

from components.figures.palette import CURVES, MONO
from components.figures.style import GRID_ZERO, LEGEND, LIGHT, escape

_SIDES = {"l": 56, "r": 12}  # the same for curves and histogram, so that their x axes line up


def activation_curves(
    x: np.ndarray,
    curves: Mapping[str, np.ndarray],
    derivatives: Mapping[str, np.ndarray],
    *,
    at: float,
    flat: float | None = None,
    x_title: str = "x",
    function_title: str = "f(x)",
    slope_title: str = "slope",
    flat_name: str = "slope 0",
) -> Figure:
    """Functions above their derivatives on one x axis, with a line at `at` and the values there in the legend.

    x: ascending, (N,); each curve and derivative has the same shape. flat: the x at which the first function's slope is
    zero, marked on both. At most three functions, distinguished by hue and dash.
    """
    data: list[dict[str, Any]] = []
    for name, pair, dash in zip(curves, CURVES, ("solid", "dash", "dot"), strict=False):
        values = [float(np.interp(at, x, panel[name])) for panel in (curves, derivatives)]
        readout = f"{escape(name)} <b>{values[0]:+.4f}</b> · {escape(slope_title)} <b>{values[1]:+.4f}</b>"
        for axis, panel, here in zip(("y", "y2"), (curves, derivatives), values, strict=True):
            line = {"color": pair.light, "dash": dash, "width": 2, "simplify": False}
            dot = {"color": pair.light, "size": 8, "line": {"color": LIGHT["card"], "width": 2}}
            curve = {"x": x.astype(np.float32), "y": panel[name].astype(np.float32), "mode": "lines", "line": line}
            data.append(curve | {"yaxis": axis, "name": readout.replace("-", "−"), "showlegend": axis == "y"})
            data.append({"x": [at], "y": [here], "mode": "markers", "marker": dot, "yaxis": axis, "showlegend": False})
    if flat is not None:
        text = f"{escape(flat_name)} · x = {flat:.4f}".replace("-", "−")
        diamond = {"symbol": "diamond-open", "size": 10, "color": LIGHT["text"], "line": {"width": 1.5}}
        for axis, panel in zip(("y", "y2"), (curves, derivatives), strict=True):
            y = float(np.interp(flat, x, next(iter(panel.values()))))
            place = {"x": [flat], "y": [y], "yaxis": axis, "marker": diamond, "showlegend": False, "cliponaxis": False}
            label = {"mode": "markers+text", "text": [text], "textposition": "bottom center", "textfont": {"size": 11}}
            data.append(place | (label if axis == "y" else {"mode": "markers"}))
    return Figure(
        {
            "data": [{"type": "scatter", "hoverinfo": "none"} | trace for trace in data],
            "layout": {
                "template": {},
                "height": 480,
                "margin": {**_SIDES, "t": 8, "b": 40},
                "xaxis": GRID_ZERO | {"title": {"text": x_title}, "range": [float(x[0]), float(x[-1])], "anchor": "y2"},
                "yaxis": GRID_ZERO | {"title": {"text": function_title}, "domain": [0.54, 1]},
                "yaxis2": GRID_ZERO | {"title": {"text": slope_title}, "domain": [0, 0.46]},
                "legend": LEGEND | {"y": 1, "font": {"family": MONO, "size": 11}},
                "shapes": [
                    {
                        "type": "line",
                        "x0": at,
                        "x1": at,
                        "yref": "paper",
                        "y0": 0,
                        "y1": 1,
                        "line": {"color": LIGHT["accent"], "width": 1.5},
                    }
                ],
                "hovermode": "x",
            },
        }
    )


def histogram(
    counts: np.ndarray, edges: np.ndarray, *, x_title: str = "pre-activation", y_title: str = "share"
) -> Figure:
    """Bars between the edges. counts: numbers or shares, (N,); edges: ascending, (N + 1,)."""
    counts, edges = np.asarray(counts, dtype=np.float32), np.asarray(edges, dtype=np.float64)
    if len(edges) != len(counts) + 1:
        raise ValueError(f"{len(counts)} bars need {len(counts) + 1} edges, not {len(edges)}")
    return Figure(
        {
            "data": [
                {
                    "type": "bar",
                    "x": ((edges[:-1] + edges[1:]) / 2).astype(np.float32),
                    "y": counts,
                    "width": np.diff(edges).astype(np.float32),
                    "marker": {"color": LIGHT["after"], "line": {"color": LIGHT["card"], "width": 0.5}},
                    "hovertemplate": f"{escape(x_title)} %{{x:.2f}}<br>{escape(y_title)} %{{y:.4~g}}<extra></extra>",
                }
            ],
            "layout": {
                "template": {},
                "height": 220,
                "bargap": 0,
                "margin": {**_SIDES, "t": 8, "b": 40},
                "xaxis": GRID_ZERO | {"title": {"text": x_title}, "range": [float(edges[0]), float(edges[-1])]},
                "yaxis": GRID_ZERO | {"title": {"text": y_title}, "rangemode": "tozero"},
            },
        }
    )
