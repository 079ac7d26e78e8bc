"""A picture: a part of a card that the widget's module in `widgets/<name>/` draws into a fixed template."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import gradio as gr
import numpy as np
from plotly.utils import PlotlyJSONEncoder

from components.parts import Action, Draw, Handler, Part, Queue


def to_json(content: object) -> str:
    """Return compact ASCII JSON. NumPy numbers and arrays are allowed, and NaN becomes null.

    Lone surrogates are preserved. The result contains no `<`, because gradio warns about anything that looks like a
    tag.

    Raises:
        TypeError: If JSON cannot represent a value.
    """
    return json.dumps(content, cls=PlotlyJSONEncoder, separators=(",", ":")).replace("<", "\\u003c")


def to_base64(*arrays: np.ndarray) -> str:
    """Return the concatenated bytes of the arrays in base64, little-endian."""
    parts = (np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes() for array in arrays)
    return base64.b64encode(b"".join(parts)).decode("ascii")


def widget(
    kind: str,
    name: str,
    *,
    template: str,
    view: str = "",
    options: dict[str, Any] | None = None,
    classes: tuple[str, ...] = (),
    on: Handler | None = None,
    on_input: Handler | None = None,
    queue: Queue = "interactive",
    input_queue: Queue = "interactive",
    latest: bool = False,
    draw: Draw | None = None,
    actions: Mapping[str, Action] | None = None,
) -> Part:
    """Return a part that a widget draws. draw: returns the data that it shows, as documented at the widget's factory.

    kind: the name that the widget's script gives to `defineWidget`. name: the part's id on
    the page, and the name of the view whose data it shows, unless `view` names another. template: one HTML element.
    options: passed to the module once, when the card is built. on, on_input: handlers for the events "select" and
    "input"; they receive the payload, an unchecked dict, in the given queues. latest: of several events in quick
    succession, handle only the newest. actions: for further events.
    """
    written = " ".join(("gb-widget", *classes))
    fixed = {"widget": kind, "view": view or name, "options": options or {}, "template": template, "classes": written}
    handlers = {"select": (on, queue), "input": (on_input, input_queue)}
    named = {event: Action(handler, each, latest) for event, (handler, each) in handlers.items() if handler is not None}
    return Part("widget", name, fixed, actions={**named, **(actions or {})}, draw=draw)


def placed(part: Part) -> gr.HTML:
    """Return a gr.HTML that shows a picture among gradio's components.

    It raises `.select` (or `.input`). Its value maps each event name to the newest payload, a dict.
    """
    call = {name: part.fixed[name] for name in ("widget", "view", "options")} | {"id": part.name or None}
    return gr.HTML(
        html_template=part.fixed["template"],
        js_on_load=f"glassbox.mount(element, trigger, props, {json.dumps(call)})",
        apply_default_css=False,
        elem_id=part.name or None,
        elem_classes=part.fixed["classes"].split(),
    )
