"""The branches of a text as a small picture: a line for each, from where it forks to where it ends."""

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
    """One line of the picture, with places in tokens from the start of the text.

    start, end: where it forks from line number `parent` (None for the first line), and where it ends. reached: how far
    the current text follows it, below `start` for not at all; here: whether the text ends on it. label: its text. sent:
    what choosing it sends to the server.
    """

    parent: int | None
    start: int
    end: int
    reached: int
    here: bool
    label: str
    sent: dict[str, Any]


def tree(name: str, **wired: Any) -> Part:
    """Return the picture drawn from `tree_data`; without lanes it is hidden.

    A click, Enter or Space on a line raises `.select` with its payload; the arrow keys move between lines.
    """
    return widget("tree", name, template=_TEMPLATE, **wired)


def tree_data(lanes: Sequence[Lane], text: str) -> dict[str, Any]:
    """Return the data of a tree. lanes: each after its parent. text: shown above the tree."""
    return {"text": text, "lanes": [asdict(lane) for lane in lanes]}
