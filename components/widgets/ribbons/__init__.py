"""A flow from tokens over attention heads to one predicted token, in ribbons that can be switched off."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<figure class="gb-ribbons" hidden>
<svg role="group"></svg>
<figcaption><p aria-live="polite"></p><button type="button" hidden></button></figcaption>
</figure>"""


def ribbons(name: str, **wired: Any) -> Part:
    """The flow; hidden without heads. It is one stop of the keyboard, with arrows; Enter and Space are clicks.

    `.select` has the payload {"part": "tokens", "heads" or "reads", "place": [...]} of what is to be switched, with the
    place [position], [layer, head] or [layer, head, position]; or {"all": true} to switch everything on.

    Data of its view: labels, and the fields that `ribbons.js` lists.
    """
    return widget("ribbons", name, template=_TEMPLATE, **wired)
