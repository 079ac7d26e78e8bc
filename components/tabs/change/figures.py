"""Figures of the effect of edits: numpy in, plotly Figure out, in the style of components.figures.charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from plotly.graph_objects import Figure

from components.figures.charts import token_label
from components.figures.palette import DIVERGING, colorscale
from components.figures.style import ALL_LABELS, LABEL, LIGHT, QUIET, SMALL, escape
from components.labels import decimal

_MAX_TICKS = 26  # token labels on an axis
_ROW_PX = 26  # of a heatmap
_MAX_ROWS_PX = 460  # all rows together


def divergence_bars(
    bits: np.ndarray, labels: Sequence[str], *, selected: int, first: int = 0, bits_title: str = "bits"
) -> Figure:
    """A bar for each token: the divergence of two predictions of the next token.

    bits: (N,), at least 0; labels: the N tokens. selected: the index to mark. first: position of the first token in the
    text. Raises ValueError if the lengths differ.
    """
    bits = np.asarray(bits, dtype=np.float32)
    if len(bits) != len(labels):
        raise ValueError(f"{len(bits)} bars need as many labels, not {len(labels)}")
    names = [token_label(label) for label in labels]
    highest = max(0.1, float(bits.max(initial=0)))
    colours = [LIGHT["accent"] if i == selected else LIGHT["after"] for i in range(len(bits))]
    return Figure(
        {
            "data": [
                {
                    "type": "bar",
                    "x": np.arange(len(bits)),
                    "y": bits,
                    "marker": {"color": colours},
                    "customdata": [f"{name}  {first + i}" for i, name in enumerate(names)],
                    "hovertemplate": f"%{{customdata}}<br>%{{y:.3f}} {escape(bits_title)}<extra></extra>",
                }
            ],
            "layout": {
                "template": {},
                "height": 260,
                "bargap": 0.25,
                "margin": {"l": 52, "r": 8, "t": 8, "b": 8},
                "xaxis": _tokens_axis(names, selected) | {"range": [-0.6, len(bits) - 0.4]},
                "yaxis": {"gridcolor": LIGHT["line"], "zeroline": False, "fixedrange": True, "rangemode": "tozero"}
                | {"title": {"text": escape(bits_title)}, "nticks": 4, "range": [0, 1.05 * highest]},
                "hovermode": "closest",
                "showlegend": False,
            },
        }
    )


def recovery_heatmap(
    recovered: np.ndarray,
    clean: Sequence[str],
    corrupted: Sequence[str],
    *,
    cell: tuple[int, int] | None = None,
    layer_title: str = "layer",
    value_title: str = "recovered",
) -> Figure:
    """Heatmap of activation patching, layers x positions.

    recovered: (n_layer, T), 0 as corrupted, 1 as clean; values below 0 and above 1 are possible, and the colour scale
    is symmetric around 0. clean, corrupted: (T,), tokens of both prompts; where they differ the label has both. cell:
    (layer, position) to frame. Raises ValueError if the lengths differ.
    """
    recovered = np.asarray(recovered, dtype=np.float32)
    n_layer, n = recovered.shape
    if not len(clean) == len(corrupted) == n:
        raise ValueError(f"{n} columns need as many labels, not {len(clean)} and {len(corrupted)}")
    names = [
        token_label(a, 10) if a == b else f"{token_label(a, 8)} / {token_label(b, 8)}"
        for a, b in zip(clean, corrupted, strict=True)
    ]
    edge = max(1.0, float(np.abs(recovered).max(initial=0)))
    rows = {"range": [n_layer - 0.5, -0.5], "tickvals": list(range(0, n_layer, max(1, -(-n_layer // 16))))}
    written = [[decimal(100 * value, 0) for value in row] for row in recovered]  # in percent
    numbers = {"text": written, "texttemplate": "%{text}", "textfont": SMALL | {"color": LIGHT["text"]}}
    numbered = n <= 14 and n_layer <= 16
    return Figure(
        {
            "data": [
                {
                    "type": "heatmap",
                    "z": recovered,
                    "zmin": -edge,
                    "zmax": edge,
                    "colorscale": colorscale(DIVERGING[2:-2] if numbered else DIVERGING),
                    "xgap": 1,
                    "ygap": 1,
                    "customdata": [names] * n_layer,
                    "hovertemplate": f"{escape(layer_title)} %{{y}} · %{{customdata}} · %{{z:.1%}}<extra></extra>",
                    "colorbar": {
                        "orientation": "h",
                        "x": 1,
                        "xanchor": "right",
                        "y": 1,
                        "yanchor": "bottom",
                        "lenmode": "pixels",
                        "len": 220,
                        "thickness": 8,
                        "outlinewidth": 0,
                        "tickvals": [-edge, 0, edge],
                        "ticktext": [f"−{100 * edge:.0f} %", "0", f"{100 * edge:.0f} %"],
                        **ALL_LABELS,
                        "title": {"text": escape(value_title), "side": "top", "font": {"size": 11}},
                        "tickfont": {"size": 11},
                    },
                }
                | (numbers if numbered else {})
            ],
            "layout": {
                "template": {},
                "height": min(_ROW_PX * n_layer, _MAX_ROWS_PX) + 150,
                "margin": {"l": 48, "r": 12, "t": 56, "b": 8},
                "xaxis": _tokens_axis(names, None if cell is None else cell[1]) | {"range": [-0.5, n - 0.5]},
                "yaxis": QUIET | rows | {"title": {"text": escape(layer_title)}},
                "shapes": [] if cell is None else [_frame(*cell)],
                "hovermode": "closest",
            },
        }
    )


def _frame(row: int, column: int) -> dict[str, Any]:
    edges = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    return {"type": "rect", **edges, "line": {"color": LIGHT["accent"], "width": 3}}


def _tokens_axis(names: Sequence[str], keep: int | None) -> dict[str, Any]:
    """Integer positions with the tokens as vertical tick labels: every n-th of many, including `keep`."""
    step = max(1, -(-len(names) // _MAX_TICKS))
    positions = list(range((keep or 0) % step, len(names), step))
    labels = {"tickvals": positions, "ticktext": [names[i] for i in positions], "tickfont": LABEL | {"size": 11}}
    return QUIET | labels | {"tickangle": -90, "automargin": True}
