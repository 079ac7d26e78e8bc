"""A line of words. What a person typed may stand in it: it reaches the page as text, never as HTML."""

from __future__ import annotations

from typing import Any, Literal

from components.parts import Part
from components.widgets.widget import widget

Kind = Literal["question", "lead", "caption", "status", "notice", "spoken", "skip"]

_TEMPLATES = {
    "question": "<h2></h2>",
    "lead": "<p></p>",
    "caption": "<p></p>",
    "status": "<p></p>",
    "notice": '<p role="status"></p>',
    "spoken": '<p aria-live="polite"></p>',
    "skip": '<a href="#tabs"></a>',  # past the header, for the keyboard
}


def sentence(name: str = "", *, kind: Kind = "lead", field: str = "text", **wired: Any) -> Part:
    """One line; an empty one takes no room. A "notice" is read aloud when it changes; a "spoken" line is
    only read aloud.

    Data of a view: text, or what `field` names; hidden (hides the line though it has words).
    """
    classes = ("gb-sentence", f"gb-{kind}")
    return widget("sentence", name, template=_TEMPLATES[kind], options={"field": field}, classes=classes, **wired)
