"""The selected layer as a row of buttons, as in the flow: one step back, its number, one step on."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<div class="gb-picks gb-picks-layer" role="group" hidden></div>"""


def layers(name: str, **wired: Any) -> Part:
    """The buttons. Raises `.select` with a payload of {"layer"}.

    Data of its view: layer, n_layer (without it the widget takes no room), labels ({"layer"}).
    """
    return widget("layers", name, template=_TEMPLATE, **wired)
