"""The figure of rotated dimension pairs, in the style of components.figures.charts."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, sin
from typing import NamedTuple

from plotly.graph_objects import Figure

from components.figures.palette import CURVES
from components.figures.style import LEGEND, LIGHT, QUIET, SMALL, escape

_APART = 2.5  # distance between the centres of two unit circles


class Hands(NamedTuple):
    """One dimension pair: its name, and the angles of query and key in radians, counter-clockwise from the x axis."""

    name: str
    query: float
    key: float


def circles(pairs: Sequence[Hands], query_name: str, key_name: str) -> Figure:
    """A unit circle for each pair, with one hand for the query and one for the key."""
    data = []
    for name, colour, dash in ((query_name, CURVES[0], "solid"), (key_name, CURVES[1], "dash")):
        x: list[float | None] = []
        y: list[float | None] = []
        for i, pair in enumerate(pairs):
            angle = pair.query if name == query_name else pair.key
            x += [i * _APART, i * _APART + cos(angle), None]
            y += [0.0, sin(angle), None]
        line = {"color": colour.light, "width": 3, "dash": dash}
        marker = {"color": colour.light, "size": [0, 9, 0] * len(pairs), "opacity": 1}
        hands = {"type": "scatter", "mode": "lines+markers", "name": escape(name), "x": x, "y": y, "hoverinfo": "skip"}
        data.append(hands | {"line": line, "marker": marker})
    rim = {"type": "circle", "y0": -1, "y1": 1, "line": {"color": LIGHT["muted"], "width": 1}}
    label = {"showarrow": False, "y": -1.1, "yanchor": "top", "font": SMALL | {"color": LIGHT["text"]}}
    end = (len(pairs) - 1) * _APART + 1.15
    hidden = QUIET | {"showticklabels": False, "constrain": "domain"}
    above = {"scaleanchor": "x", "constraintoward": "top"}
    return Figure(
        {
            "data": data,
            "layout": {
                "template": {},
                "height": 200,
                "margin": {"l": 4, "r": 4, "t": 32, "b": 4},
                "shapes": [rim | {"x0": i * _APART - 1, "x1": i * _APART + 1} for i in range(len(pairs))],
                "annotations": [label | {"x": i * _APART, "text": escape(pair.name)} for i, pair in enumerate(pairs)],
                "xaxis": hidden | {"range": [-1.15, end]},
                "yaxis": hidden | above | {"range": [-1.6, 1.15]},
                "legend": LEGEND,
            },
        }
    )
