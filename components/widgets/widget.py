"""The gr.HTML of a browser widget: a fixed template that the widget's module in `widgets/<name>/` draws in."""

from __future__ import annotations

import json
from typing import Any

import gradio as gr


def widget(
    name: str,
    elem_id: str | None,
    *,
    template: str,
    view: str | None = None,
    value: str = "",
    options: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    classes: tuple[str, ...] = (),
    **properties: Any,
) -> gr.HTML:
    """A place that the widget `name` draws in, with nothing of gradio's own look.

    name: of its module: "tokens" is `tokens/tokens.js`, "lesson/head" is `lesson/head.js`. template: its HTML, one
    element. options: what the module is given once, when the page is built. labels: its texts, until its data have
    others. view: the name of the view whose data it
    shows; a widget without a view shows its value and the other properties, which an event may set.

    A widget raises `.select` (or `.input`) with the event data `payload`.
    """
    texts = {} if labels is None else {"labels": labels}
    known = {} if view is not None else {"value": value, **texts, **properties}
    given = {**(options or {}), **texts}
    call = {"widget": name, "view": view, "id": elem_id, "options": given, "props": list(known)}
    return gr.HTML(
        html_template=template,
        js_on_load=f"glassbox.mount(element, trigger, watch, props, {json.dumps(call)})",
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=["gb-widget", *classes],
        **known,
    )
