"""A line of words. What a person typed may stand in it: it reaches the page as text, never as HTML."""

from __future__ import annotations

from typing import Literal

import gradio as gr

from components.widgets.script import sent_once, widget

Kind = Literal["question", "lead", "caption", "status", "notice"]

_TAGS = {
    "question": "<h2></h2>",
    "lead": "<p></p>",
    "caption": "<p></p>",
    "status": "<p></p>",
    "notice": '<p role="status"></p>',
}
_SCRIPT = """
const line = element.querySelector("h2, p");
const draw = () => { line.textContent = props.value || ""; line.hidden = !props.value; };
watch("value", draw);
draw();
"""
_CALL = sent_once("sentence", _SCRIPT)


def sentence(value: str = "", *, kind: Kind = "lead", elem_id: str | None = None) -> gr.HTML:
    """One line; an empty one takes no room. A "notice" is read aloud when it changes."""
    return widget(value, _TAGS[kind], _CALL, elem_id, classes=("gb-sentence", f"gb-{kind}"))
