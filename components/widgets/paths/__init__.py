"""A flow from words through concepts in two layers to one predicted token. Its parts can be switched off."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<figure class="gb-ribbons gb-paths" hidden>
<svg role="group"></svg>
<figcaption><p aria-live="polite"></p><button type="button" hidden></button></figcaption>
</figure>"""


def paths(name: str, **wired: Any) -> Part:
    """Return the flow; it is hidden if there are no columns.

    It is a single Tab stop; arrow keys move within it, and Enter and Space click.

    `.select` has the payload {"node": key} for the part to switch, or {"all": true} to switch everything on.

    View data:
        columns: a list of {"title", "nodes"}; a node is {"key", "name", "adds", "off", "says"}; nodes with a null key
            can't be switched.
        edges: a list of [column, node, node in the next column, size].
        target: the predicted token. before, after: its probability with everything on and with the current
            switches; after is None while nothing is off.
        says: a sentence. name: the target in a sentence.
    """
    return widget("paths", name, template=_TEMPLATE, **wired)
