"""The selected layer as a row of buttons, as in the flow: one step back, its number, one step on."""

from __future__ import annotations

import gradio as gr

from components.widgets.encoding import to_json
from components.widgets.widget import widget

_TEMPLATE = """<div class="gb-picks gb-picks-layer" role="group" hidden></div>"""


def layers(value: str = "", *, elem_id: str, labels: dict[str, str] | None = None, view: str | None = None) -> gr.HTML:
    """The buttons of a `layers_value`; any other string takes no room. labels: {"layer"}.

    Raises `.select` with a payload of {"layer"}.

    Data of a view: layer, n_layer (without it the widget takes no room), labels.
    """
    return widget("layers", elem_id, template=_TEMPLATE, view=view, value=value, labels=labels or {})


def layers_value(layer: int, n_layer: int) -> str:
    """The string that the widget shows."""
    return to_json({"layer": layer, "n_layer": n_layer})
