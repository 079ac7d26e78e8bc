"""Figures of attributions: numpy in, plotly Figure out, in the style of components.figures.charts.

Layer 0 is at the top in all figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from plotly.graph_objects import Figure

from components.figures.charts import token_label
from components.figures.palette import DIVERGING, HEAD_HUES, MONO, SEQUENTIAL, colorscale
from components.figures.style import ALL_LABELS, GRID, LABEL, LEGEND, LIGHT, QUIET, SMALL, escape

IN_CELL = SMALL | {"color": LIGHT["text"]}
SHADES = SEQUENTIAL[:4]  # light enough for text on top
_FOR, _AGAINST = DIVERGING[7].light, DIVERGING[2].light
_ROW = 24  # pixels of one bar
_CELL = 26  # pixels of one row of a heatmap
_LINE = 15  # minimum pixels of a row with text
_ROWS_HIGH = 460  # maximum pixels of all rows of a heatmap
_SCALE = 168  # pixels of a scale, margins included
_PATHS = (
    (LIGHT["after"], "solid"),
    (HEAD_HUES["induction"].light, "dash"),
    (HEAD_HUES["same_token"].light, "dot"),
    (HEAD_HUES["duplicate_token"].light, "dashdot"),
    (HEAD_HUES["first_token"].light, "longdash"),
    (HEAD_HUES["spread"].light, "longdashdot"),
)
_LENS_LETTERS = 8  # characters of a token in a cell
_ABOVE = 96  # pixels above a lens: the scale, and vertical tokens on a narrow page


def lens_heatmap(
    probability: np.ndarray,
    texts: Sequence[Sequence[str]],
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    column: int,
    row: int,
    tips: Sequence[Sequence[str]],
    layer_title: str = "layer",
    value_title: str = "probability",
) -> Figure:
    """The prediction of each layer after each token: rows are layers, columns are tokens of the text.

    probability: (n_layer, N), in 0..1, of each cell's best token. texts, tips: (n_layer, N), that token, and the cell's
    tooltip. inputs, outputs: (N,), the input tokens and the actual next ones ("" if there is none). (row, column): the
    selected cell. Raises ValueError if the shapes differ.
    """
    n_layer, n = _check_table(probability, texts, tips)
    if not len(inputs) == len(outputs) == n:
        raise ValueError(f"{n} columns need as many labels, not {len(inputs)} and {len(outputs)}")
    cells = [[token_label(text, _LENS_LETTERS) for text in line] for line in texts]
    positions = list(range(n))
    names, followers = ([token_label(text, _LENS_LETTERS) for text in line] for line in (inputs, outputs))
    below = {"overlaying": "x", "matches": "x", "side": "bottom", "tickvals": positions, "ticktext": followers}
    return Figure(
        {
            "data": [
                {
                    "type": "heatmap",
                    "z": np.asarray(probability, dtype=np.float32),
                    "zmin": 0,
                    "zmax": 1,
                    "colorscale": colorscale(SHADES),
                    "xgap": 1,
                    "ygap": 1,
                    "text": cells,
                    "texttemplate": "%{text}",
                    "textfont": IN_CELL,
                    "customdata": [[escape(tip) for tip in line] for line in tips],
                    "hovertemplate": "%{customdata}<extra></extra>",
                    "colorbar": scale_above([0, 1], ["0", "100 %"]),
                },
                {"type": "scatter", "x": [None], "y": [None], "xaxis": "x2", "showlegend": False},
            ],
            "layout": {
                "template": {},
                "meta": {"column": column},
                "height": max(rows_height(n_layer), _LINE * n_layer) + _ABOVE + 68,
                "margin": {"l": 48, "r": 8, "t": _ABOVE, "b": 8},
                "annotations": [scale_title(value_title, _ABOVE)],
                "xaxis": QUIET
                | {"side": "top", "range": [-0.5, n - 0.5], "tickvals": positions, "ticktext": names, "tickfont": LABEL}
                | ALL_LABELS,
                "xaxis2": QUIET
                | below
                | {"tickfont": SMALL | {"color": LIGHT["muted"]}, "automargin": True}
                | ALL_LABELS,
                "yaxis": layers_axis(n_layer, layer_title),
                "shapes": [frame(column, column, 0, n_layer - 1, 1), frame(column, column, row, row, 3)],
                "hovermode": "closest",
            },
        }
    )


def path_lines(
    probability: np.ndarray,
    rank: np.ndarray,
    stages: Sequence[str],
    tokens: Sequence[str] = ("",),
    *,
    layer_title: str = "layer",
    probability_title: str = "probability",
    rank_title: str = "rank",
) -> Figure:
    """Up to six tokens from layer to layer: the probability above, the rank below on a logarithmic scale, 1 on top.

    probability, rank: (N, 2 n_layer), after the attention and after the feed-forward part of each layer; stages: the
    name of each; tokens: (N,), distinguished by hue and dash. Raises ValueError if the lengths differ.
    """
    probability, rank = np.asarray(probability, dtype=np.float32), np.asarray(rank, dtype=np.int32)
    shape = (len(tokens), len(stages))
    if not probability.shape == rank.shape == shape:
        raise ValueError(f"{shape} tokens and stages need as many values, not {probability.shape} and {rank.shape}")
    n_layer = len(stages) // 2
    positions = (np.arange(len(stages)) / 2).astype(np.float32)
    data: list[dict[str, Any]] = []
    for token, p, ranks, (colour, dash) in zip(tokens, probability, rank, _PATHS, strict=False):
        name = token_label(token)
        line = {"type": "scatter", "mode": "lines+markers", "x": positions, "name": name, "customdata": list(stages)}
        line |= {"line": {"color": colour, "width": 2, "dash": dash}, "marker": {"color": colour, "size": 5}}
        tip = f"{name} %{{customdata}}: ".lstrip()
        data += [
            line | {"y": p, "legendgroup": name, "hovertemplate": f"{tip}%{{y:.2%}}<extra></extra>"},
            line
            | {"y": ranks, "yaxis": "y2", "showlegend": False}
            | {"hovertemplate": f"{tip}{escape(rank_title)} %{{y:,}}<extra></extra>"},
        ]
    top = float(np.log10(max(10, int(rank.max(initial=1)))))
    every = max(1, -(-n_layer // 12))
    ticks = list(range(0, n_layer, every))
    return Figure(
        {
            "data": data,
            "layout": {
                "template": {},
                "height": 300 if len(tokens) == 1 else 336,
                "margin": {"l": 64, "r": 12, "t": 8 if len(tokens) == 1 else 44, "b": 40},
                "showlegend": len(tokens) > 1,
                "legend": LEGEND | {"font": LABEL},
                "xaxis": GRID
                | {"title": {"text": layer_title}, "range": [-0.2, n_layer - 0.3], "anchor": "y2", "tickvals": ticks},
                "yaxis": GRID
                | {"title": {"text": probability_title}, "domain": [0.54, 1], "range": [-0.04, 1.04]}
                | {"tickformat": ".0%", "nticks": 3},
                "yaxis2": GRID
                | {
                    "title": {"text": rank_title},
                    "domain": [0, 0.46],
                    "type": "log",
                    "range": [1.05 * top, -0.08 * top],
                }
                | {"tickvals": [10**i for i in range(int(top) + 1)], "tickformat": ",d"},
                "hovermode": "x",
            },
        }
    )


def part_bars(
    names: Sequence[str],
    values: np.ndarray,
    ends: Sequence[str],
    *,
    heads: Sequence[tuple[int, int] | None] | None = None,
    marked: int | None = None,
) -> Figure:
    """Horizontal bars from zero, the first on top: positive to the right, negative to the left.

    values: (N,); names and ends: the labels left and right of the bars. heads: (layer, head) of the bars that are
    heads, sent on a click. marked: the row in bold. Raises ValueError if the lengths differ.
    """
    values = np.asarray(values, dtype=np.float32)
    if not len(names) == len(values) == len(ends):
        raise ValueError(f"{len(names)} names need as many bars, not {len(values)} and {len(ends)}")
    ticks, rows = [escape(name) for name in names], np.arange(len(values))
    if marked is not None:
        ticks[marked] = f"<b>{ticks[marked]}</b>"
    low, high = float(min(values.min(initial=0), 0)), float(max(values.max(initial=0), 0))
    span = max(high - low, 1e-9)
    text = {"type": "scatter", "mode": "text", "hoverinfo": "skip", "showlegend": False, "cliponaxis": False}
    return Figure(
        {
            "data": [
                {
                    "type": "bar",
                    "orientation": "h",
                    "y": rows,
                    "x": values,
                    "width": 0.62,
                    "marker": {"color": [_FOR if value >= 0 else _AGAINST for value in values]},
                    "customdata": [list(head) if head else None for head in heads] if heads else None,
                    "hoverinfo": "none",
                    "showlegend": False,
                },
                text
                | {
                    "x": np.maximum(values, 0),  # the names are on the left
                    "y": rows,
                    "text": [f"\u00a0{escape(end)}\u00a0" for end in ends],
                    "textposition": "middle right",
                    "textfont": {"family": MONO, "size": 11, "color": LIGHT["muted"]},
                },
            ],
            "layout": {
                "template": {},
                "height": _ROW * len(values) + 12,
                "margin": {"l": 8, "r": 8, "t": 4, "b": 8},
                "xaxis": QUIET
                | {"range": [low - (0.02 * span if low < 0 else 0), high + 0.34 * span], "showticklabels": False}
                | {"zeroline": True, "zerolinecolor": LIGHT["line"], "zerolinewidth": 1},
                "yaxis": QUIET
                | {"range": [len(values) - 0.5, -0.5], "tickvals": rows.tolist(), "ticktext": ticks}
                | {"tickfont": LABEL, "automargin": True, "ticklabelstandoff": 6}
                | ALL_LABELS,
                "hovermode": "closest",
            },
        }
    )


def _check_table(values: np.ndarray, *tables: Sequence[Sequence[str]]) -> tuple[int, int]:
    shape = np.shape(values)
    for table in tables:
        found = (len(table), *{len(line) for line in table})
        if found != shape:
            raise ValueError(f"values of shape {shape} need as many texts, not {found}")
    return shape


def rows_height(n_layer: int) -> int:
    return min(_CELL * n_layer, _ROWS_HIGH)


def layers_axis(n_layer: int, title: str) -> dict[str, Any]:
    ticks = list(range(0, n_layer, max(1, -(-n_layer // 16))))
    return QUIET | {"range": [n_layer - 0.5, -0.5], "tickvals": ticks, "title": {"text": escape(title)}}


def scale_above(ends: list[float], names: list[str]) -> dict[str, Any]:
    """A small scale in the margin above a heatmap, at the right; its title is `scale_title`."""
    place = {"orientation": "h", "x": 1, "xanchor": "right", "yref": "container", "y": 1, "yanchor": "top"}
    size = {"lenmode": "pixels", "len": _SCALE, "thickness": 8, "xpad": 20, "ypad": 4, "outlinewidth": 0}
    return place | size | {"tickfont": {"size": 11}, "tickvals": ends, "ticktext": names}


def scale_title(title: str, margin: int) -> dict[str, Any]:
    """The title of a scale, at the left of a margin of that height."""
    place = {"xref": "paper", "x": 1, "xanchor": "right", "xshift": 8 - _SCALE, "yref": "paper", "y": 1}
    text = {"text": escape(title), "font": {"size": 11}, "showarrow": False, "borderpad": 0}
    return place | text | {"yanchor": "middle", "yshift": margin - 8}


def frame(left: int, right: int, top: int, bottom: int, width: int) -> dict[str, Any]:
    edges = {"x0": left - 0.5, "x1": right + 0.5, "y0": top - 0.5, "y1": bottom + 0.5}
    return {"type": "rect", **edges, "line": {"color": LIGHT["accent"], "width": width}}
