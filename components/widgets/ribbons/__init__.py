"""A flow of ribbons from words, through heads or concepts, to one predicted token. Its parts can be switched off."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<figure class="gb-ribbons" hidden>
<svg role="group"></svg>
<figcaption><p aria-live="polite"></p><button type="button" hidden></button></figcaption>
</figure>"""


def ribbons(name: str, **wired: Any) -> Part:
    """Return the flow; it is hidden if there are no heads and no columns.

    It is a single Tab stop; arrow keys move within it, and Enter and Space click.

    `.select` has the payload {"all": true} to switch everything on, or names the part to switch. In a flow through
    heads, that is {"part": "tokens", "heads" or "reads", "place": [...]} with the place [position], [layer, head] or
    [layer, head, position]; in a flow through concepts, {"node": key}.

    View data: `Answer`, and `OfHeads` or `OfConcepts` (see `contents.js`).
    """
    return widget("ribbons", name, template=_TEMPLATE, **wired)
