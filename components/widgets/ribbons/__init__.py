"""A flow of ribbons from tokens through attention heads to one predicted token. Its parts can be switched off."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<figure class="gb-ribbons" hidden>
<svg role="group"></svg>
<figcaption><p aria-live="polite"></p><button type="button" hidden></button></figcaption>
</figure>"""


def ribbons(name: str, **wired: Any) -> Part:
    """Return the flow; it is hidden if there are no heads.

    It is a single Tab stop; arrow keys move within it, and Enter and Space click.

    `.select` has the payload {"part": "tokens", "heads" or "reads", "place": [...]} for the part to switch, with the
    place [position], [layer, head] or [layer, head, position]; or {"all": true} to switch everything on.

    View data: the fields listed in `ribbons.js`.
    """
    return widget("ribbons", name, template=_TEMPLATE, **wired)
