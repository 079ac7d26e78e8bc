"""A plotly chart that keeps up: it draws the newest value only, and says its content in a sentence.

gr.Plot draws every update it is sent; here the script keeps the newest and draws it at the next frame.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import NamedTuple

import gradio as gr
import numpy as np
from plotly.graph_objects import Figure
from plotly.utils import PlotlyJSONEncoder

from components.figures.palette import DARK_PARTNERS
from components.i18n import t
from components.widgets.script import given, sent_once, widget

_FOLDER = Path(__file__).parent
# What never changes is part of the script: of properties the browser may forget those that an update does not name.
_FILES = "".join((_FOLDER / name).read_text(encoding="utf-8") for name in ("rows.js", "chart.js", "save.js"))
_WORDS = {language: t("chart.save", language, kind="{kind}") for language in ("en", "zh")}
_SCRIPT = f"const CLICKABLE = given, DARK = {json.dumps(DARK_PARTNERS)}, SAVE = {json.dumps(_WORDS)};\n{_FILES}"
CSS = (_FOLDER / "chart.css").read_text(encoding="utf-8")

_TEMPLATE = """<figure class="gb-chart">
<div class="gb-plot" role="img"></div>
<span class="gb-save" role="group"><button type="button">PNG</button><button type="button">SVG</button></span>
<figcaption><p class="gb-says"></p><p class="gb-note"></p></figcaption>
</figure>"""
_CALL = sent_once("chart", _SCRIPT)


class Rows(NamedTuple):
    """Horizontal bars as buttons, from the top. names: of each, for screen readers and as its tooltip; name: of all.

    sent: what the server gets of each, together with what it gets of any of them, `common`.
    """

    name: str
    names: list[str]
    sent: list[dict[str, object]]
    common: dict[str, object]


def chart(value: str = "", *, elem_id: str, clickable: bool = False) -> gr.HTML:
    """A chart whose value is a `chart_value` string; any other string shows an empty place.

    A click on a point raises `.select` with an `evt._data` of x, y, pointNumber, curveNumber and customdata;
    `clickable` makes the pointer say so. Where its bars are `Rows`, a click or Enter on one raises it with what that
    row sends.
    """
    return widget(value, _TEMPLATE, given(_CALL, clickable), elem_id)


def chart_value(
    figure: Figure | dict[str, object] | None, text: str, note: str = "", *, rows: Rows | None = None
) -> str:
    """The string that a chart shows: the figure, the sentence that says the same, and a quieter second one; the
    sentences alone where there is nothing to draw.

    Arrays travel as base64 of their own type, so float32 and uint8 arrays make small values; what is not a Figure yet
    goes unchecked. Raises TypeError for what JSON cannot hold.
    """
    drawn = figure.to_plotly_json() if isinstance(figure, Figure) else _typed(figure)
    content = {"figure": drawn, "text": text, "note": note}
    if rows is not None:
        content["rows"] = rows._asdict()
    encoded = json.dumps(content, cls=PlotlyJSONEncoder, separators=(",", ":"))
    return encoded.replace("<", "\\u003c")


def _typed(node: object) -> object:
    """Arrays as plotly.js reads them, like `Figure.to_plotly_json`."""
    if isinstance(node, dict):
        return {key: _typed(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_typed(value) for value in node]
    if not isinstance(node, np.ndarray) or node.dtype != np.float32:
        return node
    spec = {"dtype": "f4", "bdata": base64.b64encode(np.ascontiguousarray(node).data).decode("ascii")}
    return spec | ({"shape": ", ".join(map(str, node.shape))} if node.ndim > 1 else {})
