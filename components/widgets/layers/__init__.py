"""Buttons that select a layer, as in the flow: previous layer, layer number, next layer."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<div class="gb-picks gb-picks-layer" role="group" hidden></div>"""


def layers(name: str, **wired: Any) -> Part:
    """Return the buttons. They raise `.select` with the payload {"layer"}.

    View data: layer, n_layer (if missing, the widget is hidden).
    """
    return widget("layers", name, template=_TEMPLATE, **wired)
