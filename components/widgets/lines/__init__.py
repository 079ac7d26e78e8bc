"""Attention as lines: the text twice, lines from each token to those it attends to, and the same as a picture of cells.

The weights that may be other than zero travel as base64 of uint16, so that another head of the layer, the threshold and
hovering ask the server nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from components.parts import Part
from components.widgets.encoding import to_base64
from components.widgets.widget import widget

FULL = 65535  # what stands for 1

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
    """The picture. Raises `.select` with a payload of {"position"} or {"position", "key"}.

    Data of its view: `lines_data`, and labels; without n_head it takes no room.
    """
    return widget("lines", name, template=_TEMPLATE, **wired)


def lines_data(weights: np.ndarray, content: dict[str, Any]) -> dict[str, Any]:
    """What the widget shows. weights: (pictures, queries, keys) in 0..1.

    content: n_head, layer and head (the selected ones), pictures (n_head or 1), queries and keys ({"start", "tokens"}),
    query and key (the selected positions; key -1: none), text (the sentence that says the same).
    """
    seen = seen_cells(content["queries"]["start"], content["keys"]["start"], *weights.shape[1:])
    shares = np.clip(weights[:, seen], 0, 1)
    levels = np.maximum(np.round(FULL * shares), shares > 0).astype("<u2")  # what is not zero is not shown as zero
    return {**content, "data": to_base64(levels)}


def seen_cells(query_start: int, key_start: int, n_query: int, n_key: int) -> np.ndarray:
    """(n_query, n_key): whether the key does not come after the query; only these travel."""
    return key_start + np.arange(n_key) <= query_start + np.arange(n_query)[:, None]
