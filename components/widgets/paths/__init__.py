"""A flow from words over concepts of two layers to one predicted token, whose parts can be switched off."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<figure class="gb-ribbons gb-paths" hidden>
<svg role="group"></svg>
<figcaption><p aria-live="polite"></p><button type="button" hidden></button></figcaption>
</figure>"""


def paths(name: str, **wired: Any) -> Part:
    """The flow; hidden without columns. It is one stop of the keyboard, with arrows; Enter and Space are clicks.

    `.select` has the payload {"node": key} of what is to be switched, or {"all": true} to switch everything on.

    Data of its view:
        columns: each a {"title", "nodes"}, a node a {"key", "name", "adds", "off", "says"}; a key of null can't be
            switched.
        edges: [column, node, node of the next column, size].
        target: the token; before, after: its probability, after None while nothing is off.
        says: a sentence. labels: "name" and "all".
    """
    return widget("paths", name, template=_TEMPLATE, **wired)
