"""The shared style of the page and its figures: colours, layout, axes, marks and escaped text.

Colours are pairs for the light and the dark theme. The sequential map (weights, probabilities) and the diverging one
(differences around zero) are lines through OKLab with equal steps, so that equal differences look equal. Lightness
alone conveys the order, which works for every kind of colour blindness. Every light colour has one dark partner.
Source for the colour space: Ottosson, "A perceptual color space for image processing" (2020).

Figures use light colours, which the browser replaces on the dark theme. A figure is a dict in plotly.js's format,
{"data": [...], "layout": {...}}, because creating and checking plotly's own objects takes too long to do per token.

Labels are tokens and therefore arbitrary data. Plotly interprets `<b>` and turns "1", "2" into numbers, so `& < >` are
escaped, and axes of names use integer positions with the names as tick texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from components.labels import shortened

Figure: TypeAlias = dict[str, Any]
Trace: TypeAlias = dict[str, Any]
Options: TypeAlias = dict[str, Any]

MONO = (
    '"Glassbox Mono", ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", '
    '"Liberation Mono", "Noto Sans CJK SC", monospace'
)


class Colour(NamedTuple):
    light: str
    dark: str


PALETTE: dict[str, Colour] = {
    "surface": Colour("#f4f6f8", "#12151b"),  # background of the page
    "card": Colour("#ffffff", "#1b1f27"),  # cards on the page
    "raised": Colour("#fcfdfe", "#252a34"),  # tooltips, inputs
    "text": Colour("#1a2130", "#e8ebf1"),
    "muted": Colour("#596273", "#9ca6b7"),
    "line": Colour("#e2e6ec", "#313845"),  # grids and hairlines
    "accent": Colour("#c2410c", "#ffa352"),  # what a person has changed
    "primary": Colour("#2b6cb3", "#58cbe0"),  # the primary button
    "on_primary": Colour("#fefefe", "#0e1218"),
    "before": Colour("#b4d3e6", "#37577e"),  # bars: the model's own probabilities
    "after": Colour("#2c70b5", "#4dc6da"),  # bars: after temperature and filters
    "attention": Colour("#7d47a6", "#c295e8"),
    "danger": Colour("#b3261e", "#ff8a80"),
}


def _scale(light: str, dark: str) -> tuple[Colour, ...]:
    return tuple(map(Colour, light.split(), dark.split()))


SEQUENTIAL = _scale(
    "#f0f8fc #bce2f3 #85cae8 #5caed9 #3b90ca #2c70b6 #29519d #27347d #1f1a5a",
    "#1e232c #283657 #304c80 #2a68a4 #1f88bf #2ca8d0 #4dc7db #80e3e0 #b6fce8",
)
ATTENTION = _scale(
    "#f7f3fa #dcc9ea #b98fd4 #9560bf #6a3494",
    "#1f1c26 #3d2f4f #664885 #9467bd #c898ef",
)
DIVERGING = _scale(
    "#772e11 #b1521b #db874a #f4c093 #f7f7f7 #a3d1f2 #62a3da #3572b9 #23418f",
    "#fcc687 #d98c4c #a35e31 #663c25 #242223 #304770 #3c75af #4fabdf #92ddfb",
)
CURVES: tuple[Colour, ...] = tuple(PALETTE[name] for name in ("after", "text", "muted", "before"))

_EVERY = (*PALETTE.values(), *SEQUENTIAL, *ATTENTION, *DIVERGING)
DARK_PARTNERS: dict[str, str] = {pair.light: pair.dark for pair in _EVERY}


def colorscale(colours: tuple[Colour, ...]) -> list[list[float | str]]:
    """Return a plotly colorscale [[0.0, hex], ..., [1.0, hex]] for the light theme."""
    return [[i / (len(colours) - 1), pair.light] for i, pair in enumerate(colours)]


def css_variables() -> str:
    """Return the CSS variables for both themes: `--gb-<name>` for each colour, `--gb-seq-0..8` and `--gb-div-0..8`."""
    named = {name.replace("_", "-"): pair for name, pair in PALETTE.items()}
    named |= {f"seq-{i}": pair for i, pair in enumerate(SEQUENTIAL)}
    named |= {f"div-{i}": pair for i, pair in enumerate(DIVERGING)}
    light = "".join(f"--gb-{name}:{pair.light};" for name, pair in named.items())
    dark = "".join(f"--gb-{name}:{pair.dark};" for name, pair in named.items())
    return f":root{{color-scheme:light;{light}}}\n.dark{{color-scheme:dark;{dark}}}\n"


LIGHT = {name: pair.light for name, pair in PALETTE.items()}
LABEL: dict[str, Any] = {"family": MONO, "size": 12, "color": LIGHT["text"]}
SMALL = {"family": MONO, "size": 11}
# By default plotly measures every label, which takes half a chart's drawing time, and omits labels that cross the edge.
ALL_LABELS = {"ticklabeloverflow": "allow"}
LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "itemclick": False, "itemdoubleclick": False}
LEGEND |= {"font": {"size": 11}}
DASHES = ("solid", "dash", "dot", "dashdot")


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def token_label(text: str, longest: int = 14) -> str:
    """Return a token for plotly: visible, escaped, and truncated with … after `longest` characters."""
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
    common = {"gridcolor": LIGHT["line"], "fixedrange": True, "title": {"text": escape(title)}}
    line = {"zeroline": zero, "zerolinecolor": LIGHT["muted"], "zerolinewidth": 1}
    return common | line | options


def bare_axis(title: str = "", **options: Any) -> Options:
    return axis(title) | {"showgrid": False, "ticks": ""} | options


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


def rule(*, x: float | None = None, y: float | None = None, **line: Any) -> Options:
    """Return a vertical line at x or a horizontal one at y, through the whole figure."""
    across = {"xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y}
    upright = {"yref": "paper", "y0": 0, "y1": 1, "x0": x, "x1": x}
    pen = {"color": LIGHT["text"], "width": 1.5} | line
    return {"type": "line", **(across if x is None else upright), "line": pen}


def outline(columns: tuple[int, int], rows: tuple[int, int] | None = None, width: int = 2) -> Options:
    """Return a frame around cells. columns, rows: the first and the last; without rows, it spans the full height."""
    place = {"y0": 0, "y1": 1, "yref": "paper"} if rows is None else {"y0": rows[0] - 0.5, "y1": rows[1] + 0.5}
    pen = {"color": LIGHT["text"], "width": width}
    return {"type": "rect", "x0": columns[0] - 0.5, "x1": columns[1] + 0.5, **place, "line": pen}


def note(text: str, **place: Any) -> Options:
    """Return a muted annotation in the figure. text: escaped."""
    return {"text": text, "showarrow": False, "font": {"size": 11, "color": LIGHT["muted"]}} | place


ON_PAPER = {"xref": "paper", "yref": "paper"}  # coordinates are fractions of the plot
