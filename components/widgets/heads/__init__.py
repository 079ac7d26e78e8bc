"""All heads at a glance: layers x heads of small attention pictures on one canvas, from base64 bytes.

While a text grows, only new rows of pixels travel: the browser keeps those that are finished.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from components.parts import Part
from components.widgets.encoding import to_base64
from components.widgets.widget import widget

LARGEST, SMALLEST, BUDGET = 64, 16, 164_000  # pixels of a thumbnail's side; bytes of all together
FULL = 65535  # what stands for 1
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


def heads(name: str, **wired: Any) -> Part:
    """The overview of a view's `heads_data`, with `closer` (a `closer_data`, or None) and labels.

    Without n_layer it takes no room.
    A click, Enter or Space raises `.select` with a payload of {"layer", "head"}. A rest on a head whose tokens are more
    than its pixels raises `.input` with {"layer", "head"}, to be answered with `closer`.
    """
    return widget("heads", name, template=_TEMPLATE, labels={}, **wired)


def heads_data(rows: Sequence[np.ndarray], shares: np.ndarray, content: dict[str, Any]) -> dict[str, Any]:
    """What the widget shows of all heads.

    rows: of pixels, each (n_layer, n_head, row + 1) of uint8, 255 for 1; those that are finished do not change as the
    text grows.
    shares: (n_layer, n_head, 3), the mean weight on the first token, on the one before, and on the token itself.
    content: the selected "layer" and "head", how many "tokens" there are, and "text", the sentence that says the same.
    """
    n_layer, n_head, _ = shares.shape
    packed = to_base64(np.round(FULL * shares).astype(np.uint16))
    size = {"n_layer": n_layer, "n_head": n_head, "side": len(rows)}
    return {**content, **size, "shares": packed, "rows": [to_base64(row) for row in rows]}


def closer_data(weights: np.ndarray, layer: int, head: int) -> dict[str, Any]:
    """One head in more pixels: weights (T, T) in 0..1."""
    side = min(NEAR, len(weights))
    levels = np.round(255 * max_pooled(weights, side)).astype(np.uint8)
    return {"layer": layer, "head": head, "side": side, "rows": to_base64(*(levels[i, : i + 1] for i in range(side)))}


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
