"""Who looks at whom: the text twice, lines from each token to those it looks at, and the same as a picture of cells.

The value is JSON; the weights that may be other than zero travel as base64 of uint16, so that another head of the
layer, the threshold and hovering ask the server nothing.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from components.widgets.script import sent_once, widget

_FOLDER = Path(__file__).parent
_SCRIPTS = ("flow/colour.js", "flow/picks.js", "stages/matrix.js", "lines/lines.js")
_SCRIPT = "".join((_FOLDER.parent / name).read_text(encoding="utf-8") for name in _SCRIPTS)
CSS = (_FOLDER / "lines.css").read_text(encoding="utf-8")
FULL = 65535

_TEMPLATE = """<figure class="gb-lines">
<div class="gb-lines-tools">
<div class="gb-picks gb-lines-heads" role="group"></div>
<label class="gb-lines-least"><span></span>
<input type="range" min="0" max="100" step="1" value="30"><output></output></label>
</div>
<div class="gb-lines-body">
<div class="gb-lines-picture" tabindex="0" role="application"><canvas aria-hidden="true"></canvas></div>
<div class="gb-lines-cells"><p></p><canvas aria-hidden="true"></canvas></div>
</div>
<figcaption><p class="gb-says" aria-live="polite"></p><p class="gb-note"></p></figcaption>
<div class="gb-tip gb-stages-tip" role="tooltip" hidden></div>
</figure>"""
_CALL = sent_once("lines", _SCRIPT)


def lines(value: str = "", *, elem_id: str, labels: dict[str, str] | None = None) -> gr.HTML:
    """The picture of a `lines_value`; any other string takes no room.

    Raises `.select` with an `evt._data` of {"position"}, {"position", "key"} or {"head"}.
    """
    return widget(value, _TEMPLATE, _CALL, elem_id, labels=labels or {})


def lines_value(weights: np.ndarray, content: dict[str, Any]) -> str:
    """The string that the widget shows. weights: (pictures, queries, keys) in 0..1; see `components.tabs.inside.looks`."""
    seen = seen_cells(content["queries"]["start"], content["keys"]["start"], *weights.shape[1:])
    shares = np.clip(weights[:, seen], 0, 1)
    levels = np.maximum(np.round(FULL * shares), shares > 0).astype("<u2")  # what is not zero is not shown as zero
    data = base64.b64encode(levels.tobytes()).decode()
    return json.dumps({**content, "data": data}, separators=(",", ":")).replace("<", "\\u003c")


def seen_cells(query_start: int, key_start: int, n_query: int, n_key: int) -> np.ndarray:
    """(n_query, n_key): whether the key does not come after the query; only these travel."""
    return key_start + np.arange(n_key) <= query_start + np.arange(n_query)[:, None]
