"""A picture: a part of a card that the widget's module in `widgets/<name>/` draws into a fixed template."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from plotly.utils import PlotlyJSONEncoder

from components.errors import NothingToShow, message_of
from components.i18n import t
from components.parts import Action, Draw, Handler, Part, Queue
from components.state.snapshot import Message

_encoder = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def to_json(content: object) -> str:
    """Return compact ASCII JSON. NumPy numbers and arrays are allowed, and NaN becomes null.

    Lone surrogates are preserved. The result contains no `<`, because gradio warns about anything that looks like a
    tag. Raises TypeError if JSON cannot represent a value.
    """
    try:
        text = _encoder.encode(content)
    except (TypeError, ValueError):  # a NumPy value or NaN, which take ten times as long
        text = json.dumps(content, cls=PlotlyJSONEncoder, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def to_base64(*arrays: np.ndarray) -> str:
    """Return the concatenated bytes of the arrays in base64, little-endian."""
    parts = (np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes() for array in arrays)
    return base64.b64encode(b"".join(parts)).decode("ascii")


def widget(
    kind: str,
    name: str,
    *,
    template: str,
    options: dict[str, Any] | None = None,
    classes: tuple[str, ...] = (),
    on: Handler | None = None,
    on_input: Handler | None = None,
    queue: Queue = "interactive",
    input_queue: Queue = "interactive",
    latest: bool = False,
    draw: Draw | None = None,
    empty: Mapping[str, Any] | None = None,
    answer: str = "",
    actions: Mapping[str, Action] | None = None,
) -> Part:
    """Return a part that a widget draws. draw: returns the data that it shows, as documented at the widget's factory.

    kind: the name that the widget's script gives to `defineWidget`. name: the part's id on the page, and that of its
    data. template: one HTML element. options: passed to the module once, when the card is built. on, on_input: handlers
    for the events "select" and "input"; they receive the payload, an unchecked dict, in the given queues. latest: of
    several events in quick succession, handle only the newest. empty: the data if `draw` raises NothingToShow; the page
    keeps the fields that it lacks. answer: name of the part that shows the result of "select", see
    `components.parts.button`. actions: for further events.
    """

    def drawn(s: Any) -> dict[str, Any]:
        assert draw is not None
        try:
            return draw(s)
        except NothingToShow:
            if empty is None:
                raise
            return dict(empty)

    written = " ".join(("gb-widget", *classes))
    fixed = {"widget": kind, "options": options or {}, "template": template, "classes": written}
    fixed |= {"answer": answer} if answer else {}
    handlers = {"select": (on, queue), "input": (on_input, input_queue)}
    named = {event: Action(handler, each, latest) for event, (handler, each) in handlers.items() if handler is not None}
    return Part("widget", name, fixed, actions={**named, **(actions or {})}, draw=draw and drawn)


Kind = Literal["question", "lead", "caption", "status", "notice", "spoken", "skip"]
Said = str | Message | Exception | None

_TEMPLATES = {
    "question": "<h2></h2>",
    "lead": "<p></p>",
    "caption": "<p></p>",
    "status": "<p></p>",
    "notice": '<p role="status"></p>',
    "spoken": '<p aria-live="polite"></p>',
    "skip": '<a href="#tabs"></a>',  # lets keyboard users skip the header
}


def says(name: str, text: Callable[[Any], Said], *, kind: Kind = "lead") -> Part:
    """Return a line whose text follows from a snapshot: a string, a message, an error, or None for no line.

    A "notice" is read aloud when it changes; a "spoken" line is read aloud but not shown.
    """

    def draw(s: Any) -> dict[str, Any]:
        said = text(s)
        if isinstance(said, Message):
            return {"text": t(said.key, **said.values)}
        return {"text": "" if said is None else message_of(said)}

    classes = ("gb-sentence", f"gb-{kind}")
    return widget("sentence", name, template=_TEMPLATES[kind], classes=classes, empty={"text": ""}, draw=draw)
