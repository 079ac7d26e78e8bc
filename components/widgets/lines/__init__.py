"""Attention as lines: two copies of the text, lines from each token to those it attends to, and the weights as cells.

Weights that can be non-zero are sent as uint16 in base64, so changing the head or the threshold and hovering need no
request.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from components.parts import Part
from components.widgets.encoding import to_base64
from components.widgets.widget import widget

FULL = 65535  # represents 1

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


def attention_lines(name: str, **wired: Any) -> Part:
    """Return the picture. It raises `.select` with the payload {"position"} or {"position", "key"}.

    View data: `lines_data` and labels; the picture is hidden if n_head is missing.
    """
    return widget("lines", name, template=_TEMPLATE, **wired)


def lines_data(weights: np.ndarray, content: dict[str, Any]) -> dict[str, Any]:
    """Return the widget's data. weights: (pictures, queries, keys) in 0..1.

    content: n_head, the selected layer and head, pictures (n_head or 1), queries and keys ({"start", "tokens"}), the
    selected query and key positions (-1 for no key), and text, a sentence that describes them.
    """
    seen = seen_cells(content["queries"]["start"], content["keys"]["start"], *weights.shape[1:])
    shares = np.clip(weights[:, seen], 0, 1)
    levels = np.maximum(np.round(FULL * shares), shares > 0).astype("<u2")  # non-zero weights stay non-zero
    return {**content, "data": to_base64(levels)}


def seen_cells(query_start: int, key_start: int, n_query: int, n_key: int) -> np.ndarray:
    """Return a mask of the keys that do not come after the query, (n_query, n_key); only these cells are sent."""
    return key_start + np.arange(n_key) <= query_start + np.arange(n_query)[:, None]
