"""Layers x heads of small switches: each head, each layer's attention and feed-forward part, on, off or scaled."""

from __future__ import annotations

from typing import Any

import gradio as gr
import numpy as np

from components.widgets.encoding import to_json
from components.widgets.widget import widget

LABELS = (
    "name",
    "layer",
    "all",
    "head",
    "attention",
    "feed",
    "on",
    "off",
    "times",
    "cost",
    "keys",
    "short",
    "legend",
    "state",
)

_TEMPLATE = """<div class="gb-switches">
<div class="gb-switch-grid" role="grid" tabindex="0"></div>
<div class="gb-switch-now">
<span aria-live="polite"></span><input type="range" min="0" max="2" step="0.05"><output></output>
</div>
<p class="gb-note"></p>
</div>"""


def switches(
    value: str = "", *, elem_id: str, labels: dict[str, str] | None = None, view: str | None = None
) -> gr.HTML:
    """The switches of a `switches_value`; any other string takes no room. labels: a sentence for each of LABELS.

    A click on a switch, Enter or Space turns it off and on; + and − and the slider below scale it; a click on the
    number of a layer is for both its branches, one on a column's name for all layers. Every change raises `.select`
    with a payload of {"edits": text}: all that is not 1, in the notation of `gpt.documents.edit_text`.

    Data of a view: `switches_data`, and labels; without n_layer it takes no room.
    """
    return widget("switches", elem_id, template=_TEMPLATE, view=view, value=value, labels=labels or {})


def switches_data(
    n_layer: int, n_head: int, edits: str, costs: np.ndarray | None = None, measured: int = 0
) -> dict[str, Any]:
    """edits: the factors to show, as text. costs: (n_layer, n_head), bits, how much each head's removal changes on so
    many tokens that were measured."""
    content: dict[str, Any] = {"n_layer": n_layer, "n_head": n_head, "edits": edits}
    if costs is not None:
        if costs.shape != (n_layer, n_head):
            raise ValueError(f"{n_layer} layers of {n_head} heads need as many costs, not {costs.shape}")
        content["measured"] = measured
        content["costs"] = [float(f"{cost:.3g}") for cost in costs.ravel()]
    return content


def switches_value(n_layer: int, n_head: int, edits: str, costs: np.ndarray | None = None, measured: int = 0) -> str:
    """The string of a `switches_data`."""
    return to_json(switches_data(n_layer, n_head, edits, costs, measured))
