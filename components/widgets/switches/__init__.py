"""A grid of small switches that turn each head, attention and feed-forward part on and off, or scale them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<div class="gb-switches">
<div class="gb-switch-grid" role="grid" tabindex="0"></div>
<div class="gb-switch-now">
<span aria-live="polite"></span><input type="range" min="0" max="2" step="0.05"><output></output>
</div>
<p class="gb-note"></p>
</div>"""


def switches(name: str, **wired: Any) -> Part:
    """Return the part that draws `switches_data`; it is hidden if there are no layers.

    A click, Enter or Space toggles a switch; + and − and the slider below scale it. A click on a layer's
    number switches both of its branches; a click on a column's name switches all layers. Every change raises `.select`
    with the payload {"edits": text, "n": number of the change}: all factors other than 1, in the notation of
    `gpt.documents.edit_text`. For a head, the payload also contains "layer", "head" and "on".
    """
    return widget("switches", name, template=_TEMPLATE, **wired)


def switches_data(
    n_layer: int,
    n_head: int,
    edits: str = "",
    *,
    answered: int = 0,
    costs: np.ndarray | None = None,
    measured: int = 0,
    selected: tuple[int, int] | None = None,
    of_heads: bool = False,
    marked: Collection[tuple[int, int]] = (),
) -> dict[str, Any]:
    """Return the data for the switches.

    edits: the factors to show, as text. answered: number of the last change that the
    edits include; the browser keeps later changes. costs: how much removing each head changes the
    predictions, (n_layer, n_head), in bits. measured: number of tokens on which the costs were measured. selected: the
    (layer, head) that the keys and the slider affect, or None for the last one used. of_heads: whether there are only
    heads, which are on or off. marked: heads to frame.
    """
    return {
        "n_layer": n_layer,
        "n_head": n_head,
        "edits": edits,
        "answered": answered,
        "costs": None if costs is None else [float(f"{cost:.3g}") for cost in costs.ravel()],
        "measured": measured,
        "selected": selected,
        "of_heads": of_heads,
        "marked": sorted(marked),
    }
