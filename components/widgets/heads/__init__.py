"""All heads at a glance: a grid of layers x heads with small attention pictures on one canvas, from base64 bytes.

While a text grows, only new pixel rows are sent; the browser keeps the finished ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from components.parts import Part
from components.widgets.widget import to_base64, widget

LARGEST, SMALLEST, BUDGET = 64, 16, 164_000  # limits on a thumbnail's side in pixels; total bytes for all thumbnails
FULL = 65535  # represents 1

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


def heads(name: str, *, hint: Literal["tabs", "steps"] | None = None, **wired: Any) -> Part:
    """Draw `heads_data`; hidden without n_layer. A click, Enter or Space raises `.select` with {"layer", "head"}."""
    return widget("heads", name, template=_TEMPLATE, options={"hint": hint}, **wired)


def heads_data(rows: Sequence[np.ndarray], shares: np.ndarray, content: dict[str, Any]) -> dict[str, Any]:
    """rows: pixel rows, each (n_layer, n_head, row + 1) uint8, where 255 represents 1; finished rows do not change as
    the text grows. shares: (n_layer, n_head, 3), the mean weight on the first token, on the previous token and on the
    token itself. content: the selected "layer" and "head", and "text", a sentence that describes the selection.
    """
    n_layer, n_head, _ = shares.shape
    packed = to_base64(np.round(FULL * shares).astype(np.uint16))
    size = {"n_layer": n_layer, "n_head": n_head}
    return {**content, **size, "shares": packed, "rows": [to_base64(row) for row in rows]}


def largest_side(n_layer: int, n_head: int) -> int:
    """Return a picture's maximum side in pixels, which is smaller if there are many heads."""
    fitting = int(((1 + 8 * BUDGET / (n_layer * n_head)) ** 0.5 - 1) / 2)  # side (side + 1) / 2 pixels each
    return max(SMALLEST, min(LARGEST, fitting))


def max_pooled(weights: np.ndarray, side: int) -> np.ndarray:
    """Reduce (..., T, T) to (..., side, side) by taking each group's maximum, so that thin lines never vanish."""
    starts = np.arange(side) * weights.shape[-1] // side
    return np.maximum.reduceat(np.maximum.reduceat(weights, starts, axis=-2), starts, axis=-1)
