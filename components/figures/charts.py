"""Charts: numpy in, plotly Figure out. Layouts in light colours; the browser replaces them on the dark theme.

Labels are tokens, that is, data: plotly interprets `<b>` and turns "1", "2" into numbers, so `& < >` are escaped and
token axes have integer positions with the labels as tick texts. Every text is a parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unicodedata import east_asian_width

import numpy as np
from plotly.graph_objects import Figure

from components.figures.palette import SEQUENTIAL, colorscale
from components.figures.style import ALL_LABELS, LABEL, LEGEND, LIGHT, QUIET, escape
from components.labels import percent, shortened

_SMALL = 10  # pixels, of the labels below a heatmap
_GAP = 4  # pixels, between labels and cells
_OUTSIDE = {"xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "middle", "showarrow": False}
_ROW = 22  # pixels of one bar
_LETTER = 0.027  # share of the bars' width that a letter takes on a phone
_NAMES = 100  # pixels for the names of bars; constant, so that the axis does not move with each token
_CELL = 17  # pixels of one row of a large heatmap


def token_label(text: str, longest: int = 14) -> str:
    """A token for plotly: invisible characters visible, `& < >` escaped, cut with … after `longest` characters."""
    return escape(shortened(text, longest))


def next_token_bars(
    labels: Sequence[str],
    before: np.ndarray,
    after: np.ndarray,
    *,
    chosen: int | None = None,
    before_name: str = "raw softmax",
    after_name: str = "after sampling settings",
    chosen_name: str = "chosen",
) -> Figure:
    """Horizontal bars of next-token probabilities, the first label on top.

    before, after: probabilities, (len(labels),): the raw softmax, wide and light, and the sampling distribution, narrow
    and dark. chosen: the row of the token that was sampled, or None, which removes its legend entry. Raises ValueError
    if the lengths differ.
    """
    names = {"before_name": before_name, "after_name": after_name, "chosen_name": chosen_name}
    figure = Figure(next_token_bars_content(labels, before, after, chosen=chosen, **names))
    figure.data[2].showlegend = chosen is not None
    return figure


def next_token_bars_content(
    labels: Sequence[str],
    before: np.ndarray,
    after: np.ndarray,
    *,
    chosen: int | None,
    before_name: str,
    after_name: str,
    chosen_name: str,
) -> dict[str, Any]:
    """The content of `next_token_bars`; creating and serialising a Figure takes longer than a token may."""
    before, after = np.asarray(before, dtype=np.float32), np.asarray(after, dtype=np.float32)
    if not len(labels) == len(before) == len(after):
        raise ValueError(f"{len(labels)} labels need as many bars, not {len(before)} and {len(after)}")
    names = [token_label(label, longest=11) for label in labels]
    caption = [_change(a, b) for a, b in zip(before, after, strict=True)]
    ends = [f"\u00a0{escape(change)}" for change in caption]
    colours = [LIGHT["muted"]] * len(labels)
    if chosen is not None:
        names[chosen], ends[chosen] = f"<b>{names[chosen]}</b>", f"<b>{ends[chosen]}</b>"
        colours[chosen] = LIGHT["accent"]
    rows = list(range(len(labels)))
    tips = np.maximum(before, after)
    room = 1 - _LETTER * np.array([len(change) for change in caption])  # share of the width left beside the label
    bars = {"type": "bar", "orientation": "h", "y": rows, "hovertemplate": "%{x:.3%}"}
    marks = {"type": "scatter", "hoverinfo": "skip", "cliponaxis": False}
    arrow = {"symbol": "triangle-up", "angle": 90, "standoff": 9, "size": 9, "color": LIGHT["accent"]}
    return {
        "data": [
            bars | {"x": before, "name": escape(before_name), "width": 0.76, "marker": {"color": LIGHT["before"]}},
            bars | {"x": after, "name": escape(after_name), "width": 0.36, "marker": {"color": LIGHT["after"]}},
            marks | {"mode": "markers", "x": [0], "y": [chosen], "marker": arrow, "name": escape(chosen_name)},
            marks
            | {"mode": "text", "x": tips, "y": rows, "text": ends, "textposition": "middle right"}
            | {"textfont": {"size": 11, "color": colours}, "showlegend": False},
        ],
        "layout": {
            "template": {},
            "height": _ROW * len(labels) + 36,
            "barmode": "overlay",
            "margin": {"l": _NAMES, "r": 8, "t": 28, "b": 4},
            "xaxis": QUIET
            | {
                "range": [0, float(max(1.65 * tips.max(initial=1e-9), (tips / room).max(initial=0)))],
                "showticklabels": False,
            },
            "yaxis": _tokens_axis(names) | {"range": [len(labels) - 0.5, -0.5], "ticklabelstandoff": 14},
            "legend": LEGEND
            | {
                "xref": "container",
                "yref": "container",
                "y": 1,
                "yanchor": "top",
                "font": {"size": 11},
                "indentation": -10,
            },
            "hovermode": "y unified",
        },
    }


def attention_heatmap(
    weights: np.ndarray,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    selected: int | None = None,
    first: int = 0,
    full: float | None = None,
    query_title: str = "query token",
    key_title: str = "token looked at",
    weight_title: str = "weight",
) -> Figure:
    """Attention weights: rows are queries, columns are keys; row 0 is on top, masked cells are blank.

    weights: (T, S) in 0..1, with T queries that are the last of the S keys; selected: the row to frame; first: position
    of the first key in the text. full: the weight with the full colour. None: the first rows have few keys and so large
    weights, so it is the largest weight after the first quarter, and the scale shows that. Raises ValueError if labels
    and weights differ in number.
    """
    titles = {"query_title": query_title, "key_title": key_title, "weight_title": weight_title}
    return Figure(
        attention_heatmap_content(
            weights, query_labels, key_labels, selected=selected, first=first, full=full, **titles
        )
    )


def attention_heatmap_content(
    weights: np.ndarray,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    selected: int | None,
    first: int,
    full: float | None = None,
    query_title: str,
    key_title: str,
    weight_title: str,
) -> dict[str, Any]:
    """The content of `attention_heatmap`, unchecked, for a chart that is updated with each token; NaN is blank."""
    n_query, n_key = np.shape(weights)
    if (len(query_labels), len(key_labels)) != (n_query, n_key):
        raise ValueError(
            f"weights of shape {(n_query, n_key)} need as many labels, not {(len(query_labels), len(key_labels))}"
        )
    ahead = np.triu(np.ones((n_query, n_key), dtype=bool), k=n_key - n_query + 1)
    z = np.where(ahead, np.nan, weights).astype(np.float32)
    strongest = full or float(np.nanmax(weights[min(max(1, n_query // 4), n_query - 1) :], initial=1e-6))
    queries, keys = [token_label(label) for label in query_labels], [token_label(label) for label in key_labels]
    numbered = {
        "x": [f"{label}  {first + i}" for i, label in enumerate(keys)],
        "y": [f"{label}  {first + n_key - n_query + i}" for i, label in enumerate(queries)],
    }
    # x and y have every label, for the hover text; x2 and y2 overlay them with as many as are readable.
    columns = {"overlaying": "x", "matches": "x", "side": "bottom", "tickangle": -90, "ticklabelstandoff": _GAP}
    columns |= {"tickfont": LABEL | {"size": _SMALL}}
    rows = {"overlaying": "y", "matches": "y", "side": "left", "ticklabelstandoff": _GAP}
    # Margins by the length of the labels, and titles as annotations: otherwise plotly measures every label.
    left, below = _room(query_labels, LABEL["size"]), _room(key_labels, _SMALL)
    titles = [
        {"text": escape(query_title), "x": 0, "y": 0.5, "xshift": 9 - left, "textangle": -90},
        {"text": escape(key_title), "x": 0.5, "y": 0, "yshift": 9 - below},
    ]
    own = None if selected is None else n_key - n_query + selected
    return {
        "data": [
            {
                "type": "heatmap",
                "z": z,
                "zmin": 0,
                "zmax": strongest,
                "colorscale": colorscale(SEQUENTIAL),
                "xgap": 1 if n_key <= 48 else 0,
                "ygap": 1 if n_query <= 48 else 0,
                "hoverongaps": False,
                "hovertemplate": f"%{{y}} → %{{x}}<br>{escape(weight_title)} %{{z:.4f}}<extra></extra>",
                "colorbar": _colorbar(weight_title, strongest, clipped=float(np.nanmax(weights)) > strongest),
                "showscale": n_key >= 6,
            },
            {"type": "scatter", "x": [None], "y": [None], "xaxis": "x2", "yaxis": "y2", "showlegend": False},
        ],
        "layout": {
            "template": {},
            "height": int(np.clip(_CELL * n_query + 150, 220, 560)),
            "margin": {"l": left, "r": 8, "t": 8, "b": below},
            "annotations": [title | _OUTSIDE for title in titles],
            "xaxis": _tokens_axis(numbered["x"]) | {"showticklabels": False, "range": [-0.5, n_key - 0.5]},
            "yaxis": _tokens_axis(numbered["y"]) | {"showticklabels": False, "range": [n_query - 0.5, -0.5]},
            "xaxis2": _tokens_axis(keys, most=26, keep=own) | columns,
            "yaxis2": _tokens_axis(queries, most=26, keep=selected) | rows,
            "shapes": [] if own is None or selected is None else [_frame(selected, own)],
            "hovermode": "closest",
        },
    }


def _change(before: float, after: float) -> str:
    """ "41 % → 58 %", or one number if both are equal when rounded."""
    old, new = percent(float(before)), percent(float(after))
    return new if old == new else f"{old} → {new}"


def _tokens_axis(labels: Sequence[str], most: int | None = None, keep: int | None = None) -> dict[str, Any]:
    """An axis of integer positions with the labels as tick texts: all, or every n-th, at most `most`, including
    `keep`."""
    step = 1 if most is None else max(1, -(-len(labels) // most))
    positions = list(range((keep or 0) % step, len(labels), step))
    ticks = {"tickvals": positions, "ticktext": [labels[i] for i in positions]}
    return QUIET | ALL_LABELS | ticks | {"tickfont": LABEL}


def _room(labels: Sequence[str], size: int, longest: int = 14) -> int:
    """Pixels between the edge and an axis: its title, and the longest label in a monospaced font of that size."""
    letters = (shortened(label, longest) for label in labels)
    widest = max((sum(1.0 if east_asian_width(c) in "WF" else 0.61 for c in text) for text in letters), default=0)
    return 26 + _GAP + round(size * widest)


def _colorbar(title: str, largest: float, *, clipped: bool) -> dict[str, Any]:
    """A small scale in the corner above the diagonal, which is blank in causal attention."""
    place = {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "top", "len": 0.36, "thickness": 8}
    ends = {"tickvals": [0, largest], "ticktext": ["0", f"{'≥ ' if clipped else ''}{largest:.2g}"]}
    ends |= ALL_LABELS
    return place | ends | {"title": {"text": escape(title), "side": "top"}, "outlinewidth": 0, "ypad": 4}


def _frame(row: int, last_column: int) -> dict[str, Any]:
    line = {"color": LIGHT["accent"], "width": 2}
    return {"type": "rect", "x0": -0.5, "x1": last_column + 0.5, "y0": row - 0.5, "y1": row + 0.5, "line": line}
