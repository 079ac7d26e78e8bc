"""Figures of the residual stream and the embeddings: numpy in, plotly out, in the style of
components.figures.charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from plotly.graph_objects import Figure

from components.figures.charts import token_label
from components.figures.palette import CURVES, DIVERGING, MONO, colorscale
from components.figures.style import GRID_ZERO, LEGEND, LIGHT, QUIET, SMALL, escape
from components.labels import decimal


def share_bars(
    shares: Mapping[str, np.ndarray],
    *,
    layer: int | None = None,
    layer_title: str = "layer",
    share_title: str = "share",
) -> dict[str, Any]:
    """Stacked shares of a whole by layer; {legend entry: (n_layer,)}, possibly negative.

    layer: the selected one, framed. Not checked by plotly.
    """
    hues = (LIGHT["before"], CURVES[1].light, CURVES[2].light)  # as in the norms
    data = []
    for (name, values), hue in zip(shares.items(), hues, strict=True):
        bars = {"type": "bar", "name": escape(name), "x": np.arange(len(values)), "y": np.asarray(values, np.float32)}
        tip = f"%{{x}}: %{{y:.1%}}<extra>{escape(name)}</extra>"
        data.append(bars | {"marker": {"color": hue, "line": {"width": 0}}, "hovertemplate": tip})
    n_layer = len(data[0]["x"])
    frame = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "line": {"color": LIGHT["accent"], "width": 2}}
    layout = {
        "shapes": [] if layer is None else [frame | {"x0": layer - 0.45, "x1": layer + 0.45}],
        "template": {},
        "barmode": "relative",
        "bargap": 0.3,
        "height": 300,
        "margin": {"l": 56, "r": 8, "t": 32, "b": 44},
        "xaxis": QUIET | {"title": {"text": escape(layer_title)}, "tickmode": "linear", "dtick": -(-n_layer // 24)},
        "yaxis": GRID_ZERO | {"title": {"text": escape(share_title)}, "tickformat": ".0%"},
        "legend": LEGEND,
    }
    return {"data": data, "layout": layout}


def cosine_bars(labels: Sequence[str], cosines: np.ndarray, *, title: str) -> Figure:
    """Horizontal bars of cosine similarities, the first on top. Raises ValueError if labels and cosines differ in
    number."""
    if len(labels) != len(cosines):
        raise ValueError(f"{len(cosines)} cosines need as many labels, not {len(labels)}")
    rows = np.arange(len(labels))
    bars: dict[str, Any] = {"type": "bar", "orientation": "h", "y": rows, "x": np.asarray(cosines, np.float32)}
    bars |= {"marker": {"color": LIGHT["after"]}, "text": [decimal(value) for value in cosines]}
    bars |= {"textposition": "outside", "cliponaxis": False, "textfont": SMALL | {"color": LIGHT["muted"]}}
    ticks = {"tickvals": rows, "ticktext": [token_label(label) for label in labels]}
    layout = {
        "template": {},
        "height": 44 + 24 * len(labels),
        "margin": {"l": 116, "r": 40, "t": 8, "b": 36},
        "bargap": 0.35,
        "xaxis": GRID_ZERO
        | {"title": {"text": escape(title)}, "range": [min(0.0, float(np.min(cosines, initial=0))), 1]},
        "yaxis": QUIET
        | ticks
        | {"autorange": "reversed", "tickfont": {"family": MONO, "size": 12}, "ticklabelstandoff": 6},
    }
    return Figure({"data": [bars | {"hovertemplate": "%{x:.4f}<extra></extra>"}], "layout": layout})


def similarity_heatmap(cosines: np.ndarray, positions: np.ndarray, *, title: str, value: str) -> Figure:
    """Cosine similarities (n, n) of the rows at `positions` (n,), the first on top."""
    cells = {
        "type": "heatmap",
        "z": np.asarray(cosines, np.float32),
        "x": positions,
        "y": positions,
        "zmin": -1,
        "zmax": 1,
    }
    bar = {"thickness": 8, "len": 0.5, "outlinewidth": 0, "tickvals": [-1, 0, 1]}
    cells |= {"zmin": -1, "zmax": 1, "colorscale": colorscale(DIVERGING), "colorbar": bar}
    cells |= {"hovertemplate": f"{escape(title)} %{{y}}, %{{x}}: {escape(value)} %{{z:.3f}}<extra></extra>"}
    axis = QUIET | {"title": {"text": escape(title)}}
    layout = {
        "template": {},
        "height": 380,
        "margin": {"l": 56, "r": 8, "t": 8, "b": 44},
        "xaxis": axis | {"constrain": "domain"},
        "yaxis": axis | {"autorange": "reversed", "scaleanchor": "x", "constrain": "domain"},
    }
    return Figure({"data": [cells], "layout": layout})
