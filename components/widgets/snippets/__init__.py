"""Text snippets with tinted words."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<section class="gb-snippets"><h3></h3><ol></ol></section>"""


def snippets(name: str, **wired: Any) -> Part:
    """Return a list of snippets.

    View data:
        name: the title. snippets: lists of (word, level), with levels from 0 to 1.
    """
    return widget("snippets", name, template=_TEMPLATE, **wired)
