"""One head in stages: eight pictures in a row, one of them large, and the numbers of one of its cells worked out.

The value is JSON; vectors travel as base64 of int16 with their scale, scores and weights as float32, so that another
stage or another cell asks the server nothing.
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
_SCRIPTS = ("flow/colour.js", "flow/picks.js", "stages/matrix.js", "stages/numbers.js", "stages/stages.js")
_SCRIPT = "".join((_FOLDER.parent / name).read_text(encoding="utf-8") for name in _SCRIPTS)
CSS = (_FOLDER / "stages.css").read_text(encoding="utf-8")

STAGES = ("q", "k", "raw", "scaled", "masked", "weights", "v", "z")

_TEMPLATE = """<figure class="gb-stages">
<div class="gb-picks-row"><div class="gb-picks gb-picks-layer" role="group"></div>
<div class="gb-picks gb-picks-heads" role="group"></div></div>
<div class="gb-stages-row" role="group"></div>
<div class="gb-stages-body">
<div class="gb-stages-picture">
<p class="gb-stages-what"></p>
<div class="gb-stages-large" tabindex="0" role="application"><canvas aria-hidden="true"></canvas></div>
<div class="gb-stages-legend"><span></span><span class="gb-stages-ramp"></span><span></span></div>
</div>
<div class="gb-stages-side">
<ol class="gb-stages-sum" aria-live="polite"></ol>
<div class="gb-stages-map" hidden><p class="gb-note"></p><canvas tabindex="0" role="application"></canvas></div>
</div>
</div>
<figcaption><p class="gb-says"></p><p class="gb-note"></p></figcaption>
<div class="gb-tip gb-stages-tip" role="tooltip" hidden></div>
</figure>"""
_CALL = sent_once("stages", _SCRIPT)


def stages(value: str = "", *, elem_id: str, labels: dict[str, str] | None = None) -> gr.HTML:
    """The pictures of a `stages_value`; any other string takes no room.

    Raises `.select` with an `evt._data` of one of {"layer"}, {"head"}, {"position", "key"}.
    """
    return widget(value, _TEMPLATE, _CALL, elem_id, labels=labels or {})


def stages_value(content: dict[str, Any]) -> str:
    """The string that the widget shows; see `components.tabs.inside.stages`. Arrays of uint8 become base64."""
    encoded = json.dumps(content, default=_bytes, separators=(",", ":"))
    return encoded.replace("<", "\\u003c")


def floats(values: np.ndarray) -> str:
    """Base64 of float32, little-endian."""
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()


def shorts(vectors: np.ndarray) -> dict[str, Any]:
    """Base64 of int16 and the number that 32767 stands for: three parts in 100,000 of the largest are lost."""
    scale = float(np.abs(vectors).max(initial=0)) or 1.0
    levels = np.round(vectors / scale * 32767).astype("<i2")
    return {"scale": scale, "data": base64.b64encode(levels.tobytes()).decode()}


def _bytes(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.dtype == np.uint8:
        return base64.b64encode(value.tobytes()).decode()
    raise TypeError(f"JSON cannot hold {type(value).__name__}")
