"""The selected layer as a row of buttons, the way the flow has it: one step back, its number, one step on."""

from __future__ import annotations

import json
from pathlib import Path

import gradio as gr

from components.widgets.script import sent_once, widget

_FOLDER = Path(__file__).parent
_SCRIPT = "".join((_FOLDER.parent / name).read_text(encoding="utf-8") for name in ("flow/picks.js", "layers/layers.js"))
CSS = (_FOLDER / "layers.css").read_text(encoding="utf-8")

_TEMPLATE = """<div class="gb-picks gb-picks-layer" role="group" hidden></div>"""  # dressed by the flow's style
_CALL = sent_once("layers", _SCRIPT)


def layers(value: str = "", *, elem_id: str, labels: dict[str, str] | None = None) -> gr.HTML:
    """The buttons of a `layers_value`; any other string takes no room. labels: {"layer"}.

    Raises `.select` with an `evt._data` of {"layer"}.
    """
    return widget(value, _TEMPLATE, _CALL, elem_id, labels=labels or {})


def layers_value(layer: int, n_layer: int) -> str:
    """The string that the widget shows."""
    return json.dumps({"layer": layer, "n_layer": n_layer})
