"""All heads at a glance: layers x heads of small attention pictures on one canvas, from base64 bytes."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

_FOLDER = Path(__file__).parent
_SCRIPT = "".join(
    path.read_text(encoding="utf-8") for path in (_FOLDER.parent / "flow" / "colour.js", _FOLDER / "heads.js")
)
CSS = (_FOLDER / "heads.css").read_text(encoding="utf-8")
LARGEST, SMALLEST, BUDGET = 48, 8, 160_000  # pixels of a thumbnail's side; bytes of all together

_TEMPLATE = """<figure class="gb-heads">
<div class="gb-heads-row">
<div class="gb-heads-grid" tabindex="0" role="application"><canvas aria-hidden="true"></canvas>
<div class="gb-heads-mark" hidden></div><div class="gb-heads-mark gb-heads-spot" hidden></div></div>
<div class="gb-heads-large" aria-live="polite">
<canvas aria-hidden="true"></canvas>
<div><strong></strong><p class="gb-says"></p><p class="gb-note"></p></div>
</div>
</div>
<figcaption><p class="gb-says"></p><p class="gb-note"></p></figcaption>
</figure>"""


def heads(value: str = "", *, elem_id: str, labels: dict[str, str] | None = None) -> gr.HTML:
    """The overview of a `heads_value`; any other string takes no room.

    A click, Enter or Space raises `.select` with an `evt._data` of {"layer", "head"}.
    """
    return gr.HTML(
        value,
        html_template=_TEMPLATE,
        js_on_load=_SCRIPT,
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=["gb-widget"],
        labels=labels or {},
    )


def heads_value(thumbnails: np.ndarray, content: dict[str, Any]) -> str:
    """thumbnails: (n_layer, n_head, side, side), weights in 0..1."""
    n_layer, n_head, side, _ = thumbnails.shape
    levels = np.round(255 * thumbnails).astype(np.uint8)
    data = base64.b64encode(levels.tobytes()).decode()
    shape = {"n_layer": n_layer, "n_head": n_head, "side": side}
    return json.dumps({**content, **shape, "data": data}, separators=(",", ":")).replace("<", "\\u003c")


def thumbnail_side(n_layer: int, n_head: int, length: int) -> int:
    """Pixels of a thumbnail's side: as many as the text has tokens, fewer where there are many heads."""
    fitting = int((BUDGET / (n_layer * n_head)) ** 0.5)
    return min(length, LARGEST, max(SMALLEST, fitting))


def max_pooled(weights: np.ndarray, side: int) -> np.ndarray:
    """(..., T, T) -> (..., side, side): the largest weight of each group, so that a thin line never vanishes."""
    starts = np.arange(side) * weights.shape[-1] // side
    return np.maximum.reduceat(np.maximum.reduceat(weights, starts, axis=-2), starts, axis=-1)
