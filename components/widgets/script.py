"""The scripts of the widgets: the browser gets each once, in a file that it may keep; a widget only names its own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import gradio as gr

_ARGUMENTS = "element, trigger, props, server, upload, watch"  # what gradio gives a script
_SHARED = (Path(__file__).parent / "written.js").read_text(encoding="utf-8")  # by all of them
_scripts: dict[str, str] = {}


def sent_once(name: str, script: str) -> str:
    """The `js_on_load` of a widget whose script the page's head brings along."""
    _scripts[name] = script
    return f"glassboxScripts.{name}({_ARGUMENTS})"


def given(call: str, value: object) -> str:
    """The same, with a value that the script finds as `given`."""
    return f"{call[:-1]}, {json.dumps(value)})"


def widget(
    value: str, template: str, call: str, elem_id: str | None, *, classes: tuple[str, ...] = (), **properties: object
) -> gr.HTML:
    """A place that a script of ours draws in, with nothing of gradio's own look.

    call: of `sent_once` or `given`. properties: what the script finds in `props` besides the value.
    """
    return gr.HTML(
        value,
        html_template=template,
        js_on_load=call,
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=["gb-widget", *classes],
        **properties,
    )


def scripts() -> str:
    """The file: a function for each widget."""
    parts = (f"{name}({_ARGUMENTS}, given) {{\n{script}\n}}" for name, script in sorted(_scripts.items()))
    return f"window.glassboxScripts = (() => {{\n{_SHARED}\nreturn {{\n{','.join(parts)}\n}};\n}})();\n"


def fingerprint() -> str:
    """Changes with the file."""
    return hashlib.sha256(scripts().encode()).hexdigest()[:12]
