"""Figures of the panels: numpy in, plotly out, in the style of components.figures.charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from plotly.graph_objects import Figure

from components.figures.charts import token_label
from components.figures.palette import CURVES, DIVERGING, HEAD_HUES, colorscale
from components.figures.style import ALL_LABELS, GRID_ZERO, LEGEND, LIGHT, QUIET, SMALL, escape
from components.labels import decimal

_PAIR = (LIGHT["before"], LIGHT["after"])
_PARTS = (LIGHT["after"], LIGHT["before"], LIGHT["muted"])
_HUES = (*CURVES, HEAD_HUES["same_token"])
_DASHES = ("solid", "dash", "dot", "dashdot")
_LABELLED = 12  # maximum number of bars that have a number each


def row_bars(
    rows: np.ndarray, names: Sequence[str], means: np.ndarray, stds: np.ndarray, *, place_title: str = "place"
) -> Figure:
    """Each row of (n, C) as a bar chart, one below the other on one scale, with the mean as a line and one standard
    deviation as a band.

    means, stds: (n,). names: of the rows. Raises ValueError if their numbers differ.
    """
    rows = np.asarray(rows, dtype=np.float32)
    n, width = rows.shape
    if not len(names) == len(means) == len(stds) == n:
        raise ValueError(f"{n} rows need as many names, means and deviations, not {len(names)}, {len(means)}")
    low, high = min(0.0, float(rows.min())), max(0.0, float(rows.max()))
    room = 0.16 * (high - low or 1)
    data, shapes = [], []
    layout: dict[str, Any] = {}
    for i, (row, mean, std) in enumerate(zip(rows, means, stds, strict=True)):
        axis = "" if i == 0 else str(i + 1)
        bars = {"type": "bar", "x": np.arange(width), "y": row, "xaxis": f"x{axis}", "yaxis": f"y{axis}"}
        bars |= {"marker": {"color": LIGHT["after"], "line": {"width": 0}}, "showlegend": False}
        if width <= _LABELLED:
            bars |= {"text": [decimal(value, 4) for value in row], "textposition": "outside", "cliponaxis": False}
            bars |= {"textfont": SMALL | {"color": LIGHT["muted"]}}
        data.append(bars | {"hovertemplate": f"{escape(place_title)} %{{x}}: %{{y:.4f}}<extra></extra>"})
        over = {"xref": f"x{axis} domain", "yref": f"y{axis}", "x0": 0, "x1": 1}
        band = {"type": "rect", "y0": float(mean - std), "y1": float(mean + std), "line": {"width": 0}}
        shapes.append(over | band | {"fillcolor": LIGHT["before"], "opacity": 0.35, "layer": "below"})
        line = {"color": LIGHT["accent"], "width": 1.5, "dash": "dash"}
        shapes.append(over | {"type": "line", "y0": float(mean), "y1": float(mean), "line": line})
        top = 1 - i / n
        layout[f"yaxis{axis}"] = GRID_ZERO | {
            "domain": [top - 1 / n + 0.06, top - 0.08],
            "range": [low - room * (low < 0), high + room],
            "nticks": 5,
        }
        layout[f"xaxis{axis}"] = QUIET | {"anchor": f"y{axis}", "showticklabels": False, "range": [-0.6, width - 0.4]}
    place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "yanchor": "bottom", "showarrow": False}
    notes = [
        place | {"y": 1 - i / n - 0.07, "text": escape(name), "font": SMALL | {"color": LIGHT["text"]}}
        for i, name in enumerate(names)
    ]
    layout |= {"template": {}, "height": 150 * n + 10, "margin": {"l": 40, "r": 8, "t": 4, "b": 4}, "bargap": 0.25}
    return Figure({"data": data, "layout": layout | {"shapes": shapes, "annotations": notes}})


def pair_bars(
    names: Sequence[str],
    pair: Mapping[str, np.ndarray],
    *,
    log: bool = False,
    value_title: str = "",
    name_title: str = "",
    digits: str = ".2g",
    tip: str = ".6g",
) -> dict[str, Any]:
    """One or two bars for each name, side by side; not checked by plotly, which takes four times as long.

    pair: {legend entry: values, (N,)}; values not above 0 have no bar on a logarithmic axis. Raises ValueError if the
    lengths differ.
    """
    data = []
    for (series, values), colour in zip(pair.items(), _PAIR, strict=False):
        values = np.asarray(values, dtype=np.float64)
        if len(values) != len(names):
            raise ValueError(f"{len(names)} names need as many bars, not {len(values)}")
        bars: dict[str, Any] = {"type": "bar", "name": escape(series)}
        bars |= {"x": np.arange(len(names)), "marker": {"color": colour}}
        bars |= {"y": np.where(values > 0, values, np.nan) if log else values}
        if len(names) <= _LABELLED // 2:
            bars |= {"text": [f"{value:{digits}}" for value in values], "textposition": "outside", "cliponaxis": False}
            bars |= {"textfont": SMALL | {"color": LIGHT["muted"]}}
        data.append(bars | {"hovertemplate": f"%{{x}}: %{{y:{tip}}}<extra>{escape(series)}</extra>"})
    value_axis = GRID_ZERO | {"title": {"text": escape(value_title)}, "rangemode": "tozero"}
    if log:
        value_axis |= {"type": "log", "exponentformat": "power", "dtick": 1, **_decades(list(pair.values()))}
    positions = {"tickvals": list(range(len(names))), "ticktext": [escape(name) for name in names], "automargin": True}
    positions |= ALL_LABELS
    layout = {
        "template": {},
        "height": 340,
        "barmode": "group",
        "uniformtext": {"minsize": 9, "mode": "hide"},
        "bargap": 0.3,
        "margin": {"l": 64, "r": 8, "t": 32, "b": 44},
        "xaxis": QUIET | positions | {"title": {"text": escape(name_title)}},
        "yaxis": value_axis,
        "legend": LEGEND,
    }
    return {"data": data, "layout": layout}


def stacked_bars(
    names: Sequence[str],
    series: Mapping[str, np.ndarray],
    *,
    spread: tuple[np.ndarray, np.ndarray] | None = None,
    highest: float | None = None,
    x_title: str = "",
    y_title: str = "",
    tip: str = ",",
) -> dict[str, Any]:
    """A bar for each name, of up to three parts, the first below; not checked by plotly.

    series: {legend entry: values, (N,)}. spread: the ends of a line on each bar, (N,). highest: the end of the axis.
    Raises ValueError if the lengths differ.
    """
    data = []
    for (part, values), colour in zip(series.items(), _PARTS, strict=False):
        if len(values) != len(names):
            raise ValueError(f"{len(names)} names need as many bars, not {len(values)}")
        bars = {"type": "bar", "name": escape(part), "x": np.arange(len(names)), "y": np.asarray(values)}
        bars |= {"marker": {"color": colour, "line": {"width": 0}}}
        data.append(bars | {"hovertemplate": f"%{{x}}: %{{y:{tip}}}<extra>{escape(part)}</extra>"})
    if spread is not None:
        gap = np.full(len(names), np.nan)
        path: dict[str, Any] = {"x": np.arange(len(names)).repeat(3), "y": np.stack([*spread, gap], axis=1).ravel()}
        line = {"type": "scatter", "mode": "lines", "line": {"color": LIGHT["text"], "width": 1.5}}
        data.append(path | line | {"hoverinfo": "skip", "showlegend": False})
    step = max(1, -(-len(names) // 12))
    shown = [*range(0, len(names) - step, step), len(names) - 1]
    ticks = {"tickvals": shown, "ticktext": [escape(names[i]) for i in shown], "automargin": True} | ALL_LABELS
    y_axis = GRID_ZERO | {"title": {"text": escape(y_title)}, "rangemode": "tozero"}
    layout = {
        "template": {},
        "height": 260,
        "barmode": "stack",
        "bargap": 0.2 if len(names) <= 48 else 0,
        "margin": {"l": 64, "r": 8, "t": 32, "b": 44},
        "xaxis": QUIET | ticks | {"title": {"text": escape(x_title)}},
        "yaxis": y_axis if highest is None else y_axis | {"range": [0, highest]},
        "legend": LEGEND,
    }
    return {"data": data, "layout": layout}


def _decades(values: Sequence[np.ndarray]) -> dict[str, Any]:
    """The range of a logarithmic axis: powers of ten around all values above zero."""
    above = np.concatenate([np.asarray(v, dtype=np.float64) for v in values])
    above = above[above > 0]
    if not len(above):
        return {"range": [-6, 0]}
    low, high = np.floor(np.log10(above.min())), np.ceil(np.log10(above.max()) + 0.15)
    return {"range": [float(low), float(high)], "dtick": int(max(1, (high - low) // 8))}


def lines(
    x: np.ndarray,
    series: Mapping[str, np.ndarray],
    *,
    x_title: str = "",
    y_title: str = "",
    log_x: bool = False,
    log_y: bool = False,
    level: tuple[str, float] | None = None,
    mark: tuple[str, float] | None = None,
    ticks: Sequence[str] | None = None,
    markers: bool = False,
    height: int = 320,
) -> dict[str, Any]:
    """Up to four lines over one x axis, distinguished by hue and dash; not checked by plotly.

    x and each series: (N,). level: a name and a y, drawn as a horizontal line; mark: a name and an x, drawn as a
    vertical line. ticks: the tick labels of each x.
    """
    data = []
    for (name, y), colour, dash in zip(series.items(), _HUES, _DASHES, strict=False):
        line = {"color": colour.light, "dash": dash, "width": 2}
        mode = {"mode": "lines+markers" if markers else "lines", "marker": {"color": colour.light, "size": 6}}
        tip = f"%{{x}}: %{{y:.4g}}<extra>{escape(name)}</extra>"
        curve = {"type": "scatter", "name": escape(name), "x": np.asarray(x), "y": np.asarray(y, dtype=np.float32)}
        data.append(curve | mode | {"line": line, "hovertemplate": tip})
    x_axis = GRID_ZERO | {"zeroline": False, "title": {"text": escape(x_title)}, "automargin": True}
    if ticks is not None:
        step = max(1, -(-len(ticks) // 24))
        shown = list(range(0, len(ticks), step))
        x_axis |= QUIET | {"tickvals": [x[i] for i in shown], "ticktext": [token_label(ticks[i]) for i in shown]}
        x_axis |= {"tickangle": -90, "tickfont": SMALL | {"color": LIGHT["text"]}}
    if log_x:
        x_axis |= {"type": "log", "tickvals": list(x), "ticktext": [f"{value:g}" for value in x]}
    y_axis = GRID_ZERO | {"title": {"text": escape(y_title)}, "rangemode": "tozero", "exponentformat": "power"}
    if log_y:
        y_axis |= {"type": "log", **_decades(list(series.values()))}
    shapes, notes = [], []
    thin = {"color": LIGHT["muted"], "width": 1.5, "dash": "dot"}
    word = {"showarrow": False, "font": {"size": 11, "color": LIGHT["muted"]}}
    if level is not None:
        at = float(np.log10(level[1])) if log_y else level[1]
        shapes.append({"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": level[1], "y1": level[1], "line": thin})
        notes.append(word | {"xref": "paper", "x": 1, "xanchor": "right", "y": at, "yanchor": "bottom"})
        notes[-1]["text"] = escape(level[0])
    if mark is not None:
        line = thin | {"color": LIGHT["accent"]}
        shapes.append({"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": mark[1], "x1": mark[1], "line": line})
        notes.append(word | {"yref": "paper", "y": 1, "yanchor": "top", "x": mark[1], "xanchor": "left", "xshift": 4})
        notes[-1]["text"] = escape(mark[0])
    layout = {
        "template": {},
        "height": height,
        "margin": {"l": 64, "r": 8, "t": 32, "b": 44},
        "xaxis": x_axis,
        "yaxis": y_axis,
        "legend": LEGEND,
        "showlegend": len(series) > 1,
        "shapes": shapes,
        "annotations": notes,
    }
    return {"data": data, "layout": layout}


def grid(
    values: np.ndarray, *, value_title: str = "value", x_title: str = "", y_title: str = "", height: int = 260
) -> Figure:
    """Numbers around zero as cells, (rows, columns), the first row on top.

    With axis titles the rows and the columns are numbered, without them the cells, row by row.
    """
    values = np.asarray(values, dtype=np.float32)
    rows, columns = values.shape
    largest = float(np.nanmax(np.abs(values), initial=1e-9))
    number = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    bar = {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom", "len": 0.5, "thickness": 8}
    ends = {"tickvals": [-largest, 0, largest], "ticktext": [f"−{largest:.2g}", "0", f"{largest:.2g}"]}
    cells = {"type": "heatmap", "z": values, "zmin": -largest, "zmax": largest, "hoverongaps": False}
    cells |= {"colorscale": colorscale(DIVERGING), "colorbar": bar | ends | {"outlinewidth": 0}}
    place = f"{escape(y_title)} %{{y}}, {escape(x_title)} %{{x}}" if x_title else "%{customdata}"
    cells |= {"customdata": number, "hovertemplate": f"{escape(value_title)} {place}: %{{z:.4f}}<extra></extra>"}
    x, y = (
        QUIET | {"showticklabels": bool(title), "title": {"text": escape(title)}, "automargin": True}
        for title in (x_title, y_title)
    )
    return Figure(
        {
            "data": [cells],
            "layout": {
                "template": {},
                "height": height,
                "margin": {"l": 4, "r": 4, "t": 40, "b": 4},
                "xaxis": x,
                "yaxis": y | {"autorange": "reversed"},
            },
        }
    )
