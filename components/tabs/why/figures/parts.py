"""Figures of the contributions and roles of the parts of a model: numpy in, plotly Figure out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from plotly.graph_objects import Figure

from components.figures.palette import DIVERGING, HEAD_HUES, colorscale
from components.figures.style import GRID, LIGHT, QUIET, escape
from components.labels import signed
from components.tabs.why.figures.lens import (
    IN_CELL,
    SHADES,
    frame,
    layers_axis,
    rows_height,
    scale_above,
    scale_title,
)

_BRANCHES = (HEAD_HUES["previous_token"].light, HEAD_HUES["first_token"].light)  # attention, feed-forward
_FAINT = 0.1  # shares below this stay pale
_TEXT_HEADS = 12  # maximum number of columns with numbers in the cells


def layer_bars(
    attention: np.ndarray,
    feed_forward: np.ndarray,
    ends: Sequence[tuple[str, float]],
    *,
    attention_name: str = "attention",
    feed_forward_name: str = "feed-forward",
    layer_title: str = "layer",
    value_title: str = "logit",
) -> Figure:
    """Vertical bars, two for each layer.

    attention, feed_forward: (n_layer,). ends: name and value of the contribution outside the layers, at the left.
    Raises ValueError if the lengths differ.
    """
    if len(attention) != len(feed_forward):
        raise ValueError(f"{len(attention)} layers need as many feed-forward parts, not {len(feed_forward)}")
    n_layer, n = len(attention), len(ends)
    bar = {"type": "bar", "width": 0.36, "hovertemplate": "%{y:+.3f}<extra>%{fullData.name}</extra>"}
    layers = np.arange(n_layer) + n
    every = max(1, -(-n_layer // 12))
    ticks = [*range(n), *range(n, n + n_layer, every)]
    names = [*(escape(name) for name, _ in ends), *(str(layer) for layer in range(0, n_layer, every))]
    values = np.array([value for _, value in ends], dtype=np.float32)
    data = [
        bar | {"x": np.arange(n), "y": values, "width": 0.6, "marker": {"color": LIGHT["muted"]}}
        | {"showlegend": False, "hovertemplate": "%{y:+.3f}<extra></extra>"}
    ]  # fmt: skip
    sides = zip((attention, feed_forward), (attention_name, feed_forward_name), (-0.19, 0.19), _BRANCHES, strict=True)
    for part, name, shift, colour in sides:
        place = {"x": (layers + shift).astype(np.float32), "y": np.asarray(part, dtype=np.float32)}
        data.append(bar | place | {"name": escape(name), "marker": {"color": colour}})
    return Figure(
        {
            "data": data,
            "layout": {
                "template": {},
                "height": 320,
                "barmode": "overlay",
                "margin": {"l": 48, "r": 8, "t": 28, "b": 40},
                "xaxis": QUIET
                | {"tickvals": ticks, "ticktext": names, "range": [-0.6, n + n_layer - 0.4]}
                | {"title": {"text": layer_title}, "tickangle": 0},
                "yaxis": GRID | {"title": {"text": value_title}, "zeroline": True, "zerolinecolor": LIGHT["muted"]},
                "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 11}}
                | {"itemclick": False, "itemdoubleclick": False},
                "hovermode": "closest",
            },
        }
    )


def head_map(
    values: np.ndarray,
    *,
    diverging: bool,
    selected: tuple[int, int | None] | None = None,
    layer_title: str = "layer",
    head_title: str = "head",
    value_title: str = "value",
) -> Figure:
    """One number for each head: rows are layers, columns are heads; NaN leaves a cell blank.

    values: (n_layer, n_head); diverging around zero, or from 0 up. selected: (layer, head), the whole row if head is
    None. Raises ValueError if `values` does not have two dimensions.
    """
    values = np.asarray(values, dtype=np.float32)
    if values.ndim != 2:
        raise ValueError(f"a map of heads needs one number for each layer and head, not the shape {values.shape}")
    n_layer, n_head = values.shape
    largest = max(float(np.nanmax(np.abs(values), initial=0)), 1e-6 if diverging else _FAINT)
    every = max(1, -(-n_head // 16))
    heads = list(range(0, n_head, every))
    low, high = (f"−{largest:.2g}", f"+{largest:.2g}") if diverging else ("0", f"{largest:.2g}")
    frames = []
    if selected is not None:
        layer, head = selected
        frames = [frame(0 if head is None else head, n_head - 1 if head is None else head, layer, layer, 2)]
    cells = {"text": _numbers(values, diverging), "texttemplate": "%{text}", "textfont": IN_CELL}
    return Figure(
        {
            "data": [
                {
                    "type": "heatmap",
                    "z": values,
                    "zmin": -largest if diverging else 0,
                    "zmax": largest,
                    "colorscale": colorscale(DIVERGING[2:-2] if diverging else SHADES),
                    "xgap": 1,
                    "ygap": 1,
                    "hoverongaps": False,
                    "hovertemplate": f"{escape(layer_title)} %{{y}}, {escape(head_title)} %{{x}}<br>"
                    f"{escape(value_title)} %{{z:{'+' if diverging else ''}.3f}}<extra></extra>",
                    "colorbar": scale_above([-largest if diverging else 0, largest], [low, high]),
                    **(cells if n_head <= _TEXT_HEADS else {}),
                }
            ],
            "layout": {
                "template": {},
                "height": rows_height(n_layer) + 88,
                "margin": {"l": 48, "r": 8, "t": 48, "b": 40},
                "annotations": [scale_title(value_title, 48)],
                "xaxis": QUIET | {"title": {"text": head_title}, "range": [-0.5, n_head - 0.5], "tickvals": heads},
                "yaxis": layers_axis(n_layer, layer_title),
                "shapes": frames,
                "hovermode": "closest",
            },
        }
    )


def _numbers(values: np.ndarray, diverging: bool) -> list[list[str]]:
    """The numbers in the cells; "" for NaN."""
    return [["" if np.isnan(v) else signed(v) if diverging else f"{v:.2f}" for v in line] for line in values]
