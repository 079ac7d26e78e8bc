"""A short list of things to choose from, a few cells each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import gradio as gr

from components.widgets.script import sent_once, widget

_FOLDER = Path(__file__).parent
_SCRIPT = (_FOLDER / "choices.js").read_text(encoding="utf-8")
CSS = (_FOLDER / "choices.css").read_text(encoding="utf-8")

_TEMPLATE = """<div class="gb-choices" role="group" hidden></div>"""
_CALL = sent_once("choices", _SCRIPT)


class Choice(NamedTuple):
    """One line: its cells, and what the server gets when it is chosen. A single cell takes the whole line."""

    cells: tuple[str, ...]
    sent: dict[str, object]


def choices(value: str = "", *, elem_id: str, view: str | None = None) -> gr.HTML:
    """The list of a `choices_value`; any other string takes no room. A click or Enter raises `.select` with what the
    line sends as `evt._data`; the arrow keys go from line to line."""
    return widget(value, _TEMPLATE, _CALL, elem_id)


def choices_value(name: str, head: tuple[str, ...], lines: Sequence[Choice]) -> str:
    """The string that a list shows. name: for screen readers; head: of the columns."""
    content = {"name": name, "head": head, "lines": [line._asdict() for line in lines]}
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
