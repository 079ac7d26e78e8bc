"""The shared style of all figures: layout, axes, marks and escaped text.

Figures use light colours, which the browser replaces on the dark theme. A figure is a dict in plotly.js's format,
{"data": [...], "layout": {...}}, because creating and checking plotly's own objects takes too long to do per token.

Labels are tokens and therefore arbitrary data. Plotly interprets `<b>` and turns "1", "2" into numbers, so `& < >` are
escaped, and axes of names use integer positions with the names as tick texts. All texts are passed as parameters.
Figures import neither gradio nor torch nor models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from components.figures.palette import MONO, PALETTE
from components.labels import shortened

Figure: TypeAlias = dict[str, Any]
Trace: TypeAlias = dict[str, Any]
Options: TypeAlias = dict[str, Any]

LIGHT = {name: pair.light for name, pair in PALETTE.items()}
LABEL: dict[str, Any] = {"family": MONO, "size": 12, "color": LIGHT["text"]}
SMALL = {"family": MONO, "size": 11}
# By default plotly measures every label, which takes half a chart's drawing time, and omits labels that cross the edge.
ALL_LABELS = {"ticklabeloverflow": "allow"}
LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "itemclick": False, "itemdoubleclick": False}
LEGEND |= {"font": {"size": 11}}
DASHES = ("solid", "dash", "dot", "dashdot")


def escape(text: str) -> str:
    """Escape text so that plotly does not interpret it as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def token_label(text: str, longest: int = 14) -> str:
    """Return a token for plotly, truncated with … after `longest` characters.

    Invisible characters are marked and `& < >` escaped.
    """
    return escape(shortened(text, longest))


def floats(values: Any) -> np.ndarray:
    """Return numbers as a float32 array, which is sent as base64."""
    return np.asarray(values, dtype=np.float32)


def figure(
    data: list[Trace],
    x: Options,
    y: Options,
    *,
    height: int,
    margin: tuple[int, int, int, int] = (64, 8, 32, 44),
    **layout: Any,
) -> Figure:
    """Return a figure in the page's layout. margin: left, right, above and below, in pixels."""
    sides = dict(zip("lrtb", margin, strict=True))
    common = {"template": {}, "height": height, "margin": sides, "legend": LEGEND, "hovermode": "closest"}
    return {"data": data, "layout": common | {"xaxis": x, "yaxis": y} | layout}


def axis(title: str = "", *, zero: bool = False, **options: Any) -> Options:
    """Return an axis with a grid. zero: whether to draw a line at zero."""
    common = {"gridcolor": LIGHT["line"], "fixedrange": True, "title": {"text": escape(title)}}
    line = {"zeroline": zero, "zerolinecolor": LIGHT["muted"], "zerolinewidth": 1}
    return common | line | options


def bare_axis(title: str = "", **options: Any) -> Options:
    """Return an axis without a grid or ticks."""
    bare = {"showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True}
    return bare | ({"title": {"text": escape(title)}} if title else {}) | options


def names_axis(
    names: Sequence[str], title: str = "", *, most: int | None = None, keep: int | None = None, **options: Any
) -> Options:
    """Return an axis whose integer positions are labelled with escaped names.

    With `most`, only the first and every n-th name after it are shown, about `most` in total, plus `keep`.
    """
    step = 1 if most is None else max(1, -(-len(names) // most))
    regular = (i for i in range(0, len(names), step) if keep is None or abs(i - keep) > step / 2)
    positions = sorted({*regular, *(() if keep is None else (keep,))})
    ticks = {"tickvals": positions, "ticktext": [names[i] for i in positions], "tickfont": LABEL}
    return bare_axis(title, **(ticks | ALL_LABELS | options))


def steps_axis(n: int, title: str, *, most: int = 16, **options: Any) -> Options:
    """Return an axis for the numbers 0 to n - 1, such as layers or heads, with at most `most` tick labels."""
    return bare_axis(title, tickvals=list(range(0, n, max(1, -(-n // most)))), **options)


def log_axis(title: str, values: Sequence[np.ndarray]) -> Options:
    """Return a logarithmic axis with powers of ten that covers all values above zero."""
    above = np.concatenate([np.asarray(each, dtype=np.float64) for each in values])
    above = above[above > 0]
    low, high = -6.0, 0.0
    if len(above):
        low, high = float(np.floor(np.log10(above.min()))), float(np.ceil(np.log10(above.max()) + 0.15))
    step = int(max(1, (high - low) // 8))
    return axis(title, type="log", exponentformat="power", range=[low, high], dtick=step)


def upright(x: float, colour: str = "text", **line: Any) -> Options:
    """Return a vertical line through the whole figure."""
    pen = {"color": LIGHT[colour], "width": 1.5} | line
    return {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": pen}


def level(y: float) -> Options:
    """Return a dotted horizontal line."""
    pen = {"color": LIGHT["muted"], "width": 1.5, "dash": "dot"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": pen}


def band(first: float, last: float) -> Options:
    """Return a frame around columns that spans the full height."""
    pen = {"color": LIGHT["text"], "width": 2}
    return {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "x0": first, "x1": last, "line": pen}


def outline(columns: tuple[int, int], rows: tuple[int, int], width: int = 2) -> Options:
    """Return a frame around cells. columns, rows: the first and the last."""
    edges = {"x0": columns[0] - 0.5, "x1": columns[1] + 0.5, "y0": rows[0] - 0.5, "y1": rows[1] + 0.5}
    return {"type": "rect", **edges, "line": {"color": LIGHT["text"], "width": width}}


def note(text: str, **place: Any) -> Options:
    """Return a muted annotation in the figure. text: escaped."""
    return {"text": text, "showarrow": False, "font": {"size": 11, "color": LIGHT["muted"]}} | place


ON_PAPER = {"xref": "paper", "yref": "paper"}  # coordinates are fractions of the plot
