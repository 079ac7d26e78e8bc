"""A plotly chart that draws only the newest figure, with a sentence that describes it.

gr.Plot draws every update; this chart draws only the newest one, in the next animation frame.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from components.figures.style import Figure
from components.parts import Part
from components.widgets.widget import to_base64, widget

_TEMPLATE = """<figure class="gb-chart">
<div class="gb-plot" role="group"></div>
<figcaption><p class="gb-says"></p><p class="gb-note"></p></figcaption>
</figure>"""


Drawing = tuple[Figure | None, str] | tuple[Figure | None, str, str] | dict[str, Any] | None


def picture(name: str, draw: Callable[[Any], Drawing] | None = None, *, clickable: bool = False, **wired: Any) -> Part:
    """Return a chart. Its space is left empty if there is no data.

    draw: returns a figure and a sentence that describes it, optionally a secondary sentence; None for nothing. It may
    also return `chart_data`.

    A click on a point raises `.select` with a payload of x, y, pointNumber, curveNumber and customdata; `clickable`
    changes the pointer accordingly.
    """

    def data(s: Any) -> dict[str, Any]:
        assert draw is not None
        drawn = draw(s)
        return drawn if isinstance(drawn, dict) else chart_data(*(drawn or (None, "")))

    wired |= {"draw": draw and data, "empty": chart_data(None, "")}
    return widget("chart", name, template=_TEMPLATE, options={"clickable": clickable}, **wired)


def chart_data(figure: Figure | None, text: str, note: str = "", *, cells: list[str] | None = None) -> dict[str, Any]:
    """Return the data for a chart: the figure, a sentence that describes it, and a secondary sentence.

    If there is nothing to draw, only the sentences are shown. float32 arrays are sent as base64, which keeps the data
    small. cells: the rows of the figure's heatmap, each in base64, if the figure itself lacks them: a growing text only
    adds rows.
    """
    data = {"figure": _packed(figure), "text": text, "note": note}
    return data if cells is None else data | {"cells": cells}


def _packed(node: object) -> Any:
    """Convert float32 arrays to the form that plotly.js reads, as `Figure.to_plotly_json` does."""
    if isinstance(node, dict):
        return {key: _packed(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_packed(value) for value in node]
    if not isinstance(node, np.ndarray) or node.dtype != np.float32:
        return node
    spec = {"dtype": "f4", "bdata": to_base64(node)}
    return spec | ({"shape": ", ".join(map(str, node.shape))} if node.ndim > 1 else {})
