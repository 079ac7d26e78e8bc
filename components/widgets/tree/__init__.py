"""The branches of a text as a small picture: a line for each, from where it parts to where it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from components.widgets.script import sent_once, widget

_FOLDER = Path(__file__).parent
_SCRIPT = (_FOLDER / "tree.js").read_text(encoding="utf-8")
CSS = (_FOLDER / "tree.css").read_text(encoding="utf-8")

_TEMPLATE = """<figure class="gb-tree">
<figcaption></figcaption>
<div class="gb-branches" role="listbox"><svg aria-hidden="true"></svg></div>
</figure>"""
_CALL = sent_once("tree", _SCRIPT)


@dataclass(frozen=True)
class Lane:
    """One line of the picture, in tokens from the start of the text.

    start, end: where it parts from the line number `parent` (None for the first) and where it ends.
    reached: how far the current text follows it, below `start` for not at all; here: whether the text ends on it.
    label: its words. sent: what the server gets when it is chosen.
    """

    parent: int | None
    start: int
    end: int
    reached: int
    here: bool
    label: str
    sent: dict[str, Any]


def tree(value: str = "", *, elem_id: str, view: str | None = None) -> gr.HTML:
    """The picture of a `tree_value`; any other string takes no room. A click, Enter or Space on a line raises `.select`
    with what it sends as `evt._data`; the arrow keys go from line to line."""
    return widget(value, _TEMPLATE, _CALL, elem_id)


def tree_value(lanes: Sequence[Lane], text: str) -> str:
    """The string that a tree shows. lanes: each after its parent. text: what stands above it."""
    content = {"text": text, "lanes": [asdict(lane) for lane in lanes]}
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
