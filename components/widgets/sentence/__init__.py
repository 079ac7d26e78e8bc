"""A line of text. It may contain user input, which is sent to the page as text, never as HTML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from components.errors import localize_error
from components.i18n import t
from components.parts import Part
from components.state.snapshot import Message
from components.widgets.widget import widget

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


def sentence(name: str = "", *, kind: Kind = "lead", field: str = "text", **wired: Any) -> Part:
    """Return one line, which is hidden while it is empty.

    A "notice" is read aloud when it changes; a "spoken" line is read aloud but not shown. View data: text, or the field
    that `field` names; hidden (hides the line even if it has text).
    """
    classes = ("gb-sentence", f"gb-{kind}")
    return widget("sentence", name, template=_TEMPLATES[kind], options={"field": field}, classes=classes, **wired)


def says(name: str, text: Callable[[Any], Said], *, kind: Kind = "lead") -> Part:
    """Return a line whose text follows from a snapshot: a string, a message, an error, or None for no line."""
    return sentence(name, kind=kind, draw=lambda s: sentence_data(text(s)))


def sentence_data(said: Said) -> dict[str, Any]:
    """Return the view data for a text, message or error, or for an empty line if there is none."""
    if isinstance(said, Message):
        return {"text": t(said.key, **said.values)}
    return {"text": "" if said is None else localize_error(said)}
