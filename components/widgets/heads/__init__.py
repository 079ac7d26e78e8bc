"""All heads at a glance: layers x heads of small attention pictures on one canvas, from base64 bytes.

While a text grows, only new rows of pixels travel: the browser keeps those that are finished.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from components.widgets.script import sent_once, widget

_FOLDER = Path(__file__).parent
_SCRIPT = "".join(
    path.read_text(encoding="utf-8") for path in (_FOLDER.parent / "flow" / "colour.js", _FOLDER / "heads.js")
)
CSS = (_FOLDER / "heads.css").read_text(encoding="utf-8")
LARGEST, SMALLEST, BUDGET = 64, 16, 164_000  # pixels of a thumbnail's side; bytes of all together
NEAR = 128  # pixels of the side of the one that is looked at

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
_CALL = sent_once("heads", _SCRIPT)


def heads(value: str = "", *, elem_id: str, labels: dict[str, str] | None = None) -> gr.HTML:
    """The overview of a `heads_value` or `growing_value`; any other string takes no room.

    A click, Enter or Space raises `.select` with an `evt._data` of {"layer", "head"}; a value that builds on rows which
    the browser does not hold, one of {"whole"}. A rest on a head whose tokens are more than its pixels raises `.input`
    with {"layer", "head"}: the answer is a `near_value` for the property `near`.
    """
    return widget(value, _TEMPLATE, _CALL, elem_id, labels=labels or {}, near="")


def heads_value(thumbnails: np.ndarray, shares: np.ndarray, content: dict[str, Any]) -> str:
    """What the widget shows of pictures that do not grow: weights in 0..1, (n_layer, n_head, side, side).

    shares: (n_layer, n_head, 3), the mean weight on the first token, on the one before, and on the token itself.
    content: the selected "layer" and "head", and "text", the sentence that says the same.
    """
    levels = np.round(255 * thumbnails).astype(np.uint8)
    rows = [levels[..., row, : row + 1] for row in range(levels.shape[-1])]
    whole = {"key": "whole", "first": 0, "tokens": len(rows), "near": ""}
    return growing_value(rows, shares, {**content, **whole}, whole=True)


def growing_value(rows: Sequence[np.ndarray], shares: np.ndarray, content: dict[str, Any], *, whole: bool) -> str:
    """The same for pictures that grow. rows: of pixels, each (n_layer, n_head, row + 1) of uint8.

    The "first" rows of content are sent only where `whole`, and are known again by its "key". content has besides how
    many "tokens" there are, and the "near" that `near_value` names.
    """
    n_layer, n_head, _ = shares.shape
    first, levels = content["first"], np.round(65535 * shares).astype("<u2")
    value = {**content, "n_layer": n_layer, "n_head": n_head, "side": len(rows), "shares": _base64(levels)}
    value["rows"] = _base64(*rows[first:])
    if whole:
        value["base"] = _base64(*rows[:first])
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def near_value(weights: np.ndarray, layer: int, head: int, near: str) -> str:
    """One head in more pixels: weights (T, T) in 0..1. near: says of which text, as the content of the overview."""
    side = min(NEAR, len(weights))
    levels = np.round(255 * max_pooled(weights, side)).astype(np.uint8)
    rows = _base64(*(levels[row, : row + 1] for row in range(side)))
    return json.dumps({"layer": layer, "head": head, "near": near, "side": side, "rows": rows}, separators=(",", ":"))


def _base64(*arrays: np.ndarray) -> str:
    return base64.b64encode(b"".join(array.tobytes() for array in arrays)).decode()


def largest_side(n_layer: int, n_head: int) -> int:
    """Pixels of a picture's side, at most: fewer where there are many heads. What lies ahead does not travel."""
    fitting = int(((1 + 8 * BUDGET / (n_layer * n_head)) ** 0.5 - 1) / 2)  # side (side + 1) / 2 pixels each
    return max(SMALLEST, min(LARGEST, fitting))


def thumbnail_side(n_layer: int, n_head: int, length: int) -> int:
    """Pixels of the side of a picture of so many tokens."""
    return min(length, largest_side(n_layer, n_head))


def max_pooled(weights: np.ndarray, side: int) -> np.ndarray:
    """(..., T, T) -> (..., side, side): the largest weight of each group, so that a thin line never vanishes."""
    starts = np.arange(side) * weights.shape[-1] // side
    return np.maximum.reduceat(np.maximum.reduceat(weights, starts, axis=-2), starts, axis=-1)
