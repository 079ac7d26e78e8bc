"""The draw of one token: a distribution laid end to end from 0 to 1, and where the number fell on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import gradio as gr

from components.widgets.script import sent_once, widget

_FOLDER = Path(__file__).parent
_SCRIPT = (_FOLDER / "draw.js").read_text(encoding="utf-8")
CSS = (_FOLDER / "draw.css").read_text(encoding="utf-8")

_TEMPLATE = """<figure class="gb-draw">
<figcaption class="gb-says"></figcaption>
<div class="gb-fell" aria-hidden="true"><span></span></div>
<div class="gb-pieces" tabindex="0" role="group"></div>
<div class="gb-ends" aria-hidden="true"><span>0</span><p aria-live="polite"></p><span>1</span></div>
</figure>"""
_CALL = sent_once("draw", _SCRIPT)


class Piece(NamedTuple):
    """What lies from where the piece before ends to `end`, in 0..1, and what is said of it."""

    end: float
    says: str


def draw(value: str = "", *, elem_id: str, view: str | None = None) -> gr.HTML:
    """The strip of a `draw_value`; any other string takes no room. Pointer and arrow keys tell what each piece is."""
    return widget(value, _TEMPLATE, _CALL, elem_id)


def draw_value(text: str, pieces: Sequence[Piece] = (), *, number: float = 0.0, place: int = 0, mark: str = "") -> str:
    """The string that a strip shows: a sentence, and, where there are pieces, the number that fell on the `place`-th of
    them, with the words at that mark."""
    content = {"text": text, "pieces": pieces, "number": number, "place": place, "mark": mark}
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
