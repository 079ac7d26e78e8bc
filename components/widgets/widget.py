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
    view: str,
    options: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    classes: tuple[str, ...] = (),
) -> gr.HTML:
    """A place that the widget `name` draws in, with nothing of gradio's own look.

    name: of its module: "tokens" is `tokens/tokens.js`, "lesson/head" is `lesson/head.js`. template: its HTML, one
    element. view: the name of the view whose data it shows. options: what the module is given once, when the page is
    built. labels: its texts, until its data have others.

    A widget raises `.select` (or `.input`). Its value has the newest payload, a dict, by the name of the event.
    """
    given = {**(options or {}), **({} if labels is None else {"labels": labels})}
    call = {"widget": name, "view": view, "id": elem_id, "options": given}
    return gr.HTML(
        html_template=template,
        js_on_load=f"glassbox.mount(element, trigger, props, {json.dumps(call)})",
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=["gb-widget", *classes],
    )
