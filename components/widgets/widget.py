"""A picture: a part of a card that the widget's module in `widgets/<name>/` draws in a fixed template."""

from __future__ import annotations

import json
from typing import Any

import gradio as gr

from components.parts import Action, Handler, Part, Queue


def widget(
    kind: str,
    name: str,
    *,
    template: str,
    view: str = "",
    options: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    classes: tuple[str, ...] = (),
    on: Handler | None = None,
    on_input: Handler | None = None,
    queue: Queue = "interactive",
    input_queue: Queue = "interactive",
    latest: bool = False,
) -> Part:
    """A place that a widget draws in.

    kind: its module: "tokens" is `tokens/tokens.js`, "lesson/head" is `lesson/head.js`. name: its id on the page, and
    the name of the view whose data it shows, unless `view` names another. template: its HTML, one element. options:
    what the module is given once, when the card is built. labels: its texts, until its data have others. on, on_input:
    get the payload of its event "select" or "input", a dict of unchecked content, in the queue of each. latest: of
    several quick ones, only the newest counts.
    """
    given = {**(options or {}), **({} if labels is None else {"labels": labels})}
    written = " ".join(("gb-widget", *classes))
    fixed = {"widget": kind, "view": view or name, "options": given, "template": template, "classes": written}
    handlers = {"select": (on, queue), "input": (on_input, input_queue)}
    actions = {
        event: Action(handler, each, latest) for event, (handler, each) in handlers.items() if handler is not None
    }
    return Part("widget", name, fixed, actions=actions)


def placed(part: Part) -> gr.HTML:
    """The gr.HTML of a picture that stands among gradio's components.

    It raises `.select` (or `.input`); its value has the newest payload, a dict, by the name of the event.
    """
    call = {name: part.fixed[name] for name in ("widget", "view", "options")} | {"id": part.name or None}
    return gr.HTML(
        html_template=part.fixed["template"],
        js_on_load=f"glassbox.mount(element, trigger, props, {json.dumps(call)})",
        apply_default_css=False,
        elem_id=part.name or None,
        elem_classes=part.fixed["classes"].split(),
    )
