"""The scripts of the widgets: the browser gets each once, in a file that it may keep; a widget only names its own."""

from __future__ import annotations

import hashlib
import json

_ARGUMENTS = "element, trigger, props, server, upload, watch"  # what gradio gives a script
_scripts: dict[str, str] = {}


def sent_once(name: str, script: str) -> str:
    """The `js_on_load` of a widget whose script the page's head brings along."""
    _scripts[name] = script
    return f"glassbox.{name}({_ARGUMENTS})"


def given(call: str, value: object) -> str:
    """The same, with a value that the script finds as `given`."""
    return f"{call[:-1]}, {json.dumps(value)})"


def scripts() -> str:
    """The file: a function for each widget."""
    parts = (f"{name}({_ARGUMENTS}, given) {{\n{script}\n}}" for name, script in sorted(_scripts.items()))
    return f"window.glassbox = {{\n{','.join(parts)}\n}};\n"


def fingerprint() -> str:
    """Changes with the file."""
    return hashlib.sha256(scripts().encode()).hexdigest()[:12]
