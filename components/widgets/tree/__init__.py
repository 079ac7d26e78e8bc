"""A text's branches as a small picture, each drawn as a line from its fork to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<figure class="gb-tree">
<figcaption></figcaption>
<div class="gb-branches" role="listbox"><svg aria-hidden="true"></svg></div>
</figure>"""


@dataclass(frozen=True)
class Lane:
    """One line in the picture, with positions in tokens from the start of the text.

    start, end: where the line forks from line number `parent` (None for the first line), and where it ends. reached:
    how far the current text follows it, or a value below `start` if not at all. here: whether the text ends on it.
    label: the line's text. sent: payload sent to the server when the line is chosen.
    """

    parent: int | None
    start: int
    end: int
    reached: int
    here: bool
    label: str
    sent: dict[str, Any]


def tree(name: str, **wired: Any) -> Part:
    """Return the part that draws `tree_data`; it is hidden if there are no lanes.

    A click, Enter or Space on a line raises `.select` with its payload; the arrow keys move between lines.
    """
    return widget("tree", name, template=_TEMPLATE, **wired)


def tree_data(lanes: Sequence[Lane], text: str) -> dict[str, Any]:
    """Return the data for a tree. lanes: parents before their children. text: shown above the tree."""
    return {"text": text, "lanes": [asdict(lane) for lane in lanes]}
