"""A plotly chart that draws the newest figure only, and says its content in a sentence.

gr.Plot draws every update it is sent; here the newest is kept and drawn with the next animation frame.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from components.figures.palette import DARK_PARTNERS
from components.figures.style import Figure
from components.i18n import LANGUAGES, t
from components.parts import Part
from components.widgets.encoding import to_base64
from components.widgets.widget import widget

_TEMPLATE = """<figure class="gb-chart">
<div class="gb-plot" role="img"></div>
<span class="gb-save" role="group"><button type="button">PNG</button><button type="button">SVG</button
><button type="button">HTML</button></span>
<figcaption><p class="gb-says"></p><p class="gb-note"></p></figcaption>
</figure>"""
# What every chart of the page is given.
PAGE_OPTIONS = {
    "dark": DARK_PARTNERS,
    "save": {language: t("chart.save", language, kind="{kind}") for language in LANGUAGES},
}


class Rows(NamedTuple):
    """Horizontal bars as buttons, from the top. names: of each, for screen readers and as its tooltip; name: of all.

    sent: what the server gets of each, together with what it gets of any of them, `common`.
    """

    name: str
    names: list[str]
    sent: list[dict[str, object]]
    common: dict[str, object]


def chart(name: str, *, clickable: bool = False, **wired: Any) -> Part:
    """A chart; without data an empty place.

    A click on a point raises `.select` with a payload of x, y, pointNumber, curveNumber and customdata; `clickable`
    makes the pointer say so. Where its bars are `Rows`, a click or Enter on one raises it with what that row sends.

    Data of its view: figure (None: the sentences alone), text, note, rows; `chart_data` makes them.
    """
    return widget("chart", name, template=_TEMPLATE, options={"clickable": clickable}, **wired)


def chart_data(figure: Figure | None, text: str, note: str = "", *, rows: Rows | None = None) -> dict[str, Any]:
    """What a chart shows: the figure, the sentence that says the same, and a quieter second one; the sentences alone
    where there is nothing to draw.

    float32 arrays travel as base64, which makes small data.
    """
    return {"figure": _packed(figure), "text": text, "note": note, "rows": None if rows is None else rows._asdict()}


def _packed(node: object) -> Any:
    """float32 arrays as plotly.js reads them, like `Figure.to_plotly_json`."""
    if isinstance(node, dict):
        return {key: _packed(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_packed(value) for value in node]
    if not isinstance(node, np.ndarray) or node.dtype != np.float32:
        return node
    spec = {"dtype": "f4", "bdata": to_base64(node)}
    return spec | ({"shape": ", ".join(map(str, node.shape))} if node.ndim > 1 else {})
