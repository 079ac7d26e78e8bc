"""The branches of a text as a small picture: a line for each, from where it parts to where it ends."""

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
    """One line of the picture, in tokens from the start of the text.

    start, end: where it parts from the line number `parent` (None for the first) and where it ends.
    reached: how far the current text follows it, below `start` for not at all; here: whether the text ends on it.
    label: its words. sent: what the server gets when it is chosen.
    """

    parent: int | None
    start: int
    end: int
    reached: int
    here: bool
    label: str
    sent: dict[str, Any]


def tree(name: str, **wired: Any) -> Part:
    """The picture of a view's `tree_data`; without lanes it takes no room.

    A click, Enter or Space on a line raises `.select` with what it sends as payload; the arrow keys go from line to
    line.
    """
    return widget("tree", name, template=_TEMPLATE, **wired)


def tree_data(lanes: Sequence[Lane], text: str) -> dict[str, Any]:
    """What a tree shows. lanes: each after its parent. text: what stands above it."""
    return {"text": text, "lanes": [asdict(lane) for lane in lanes]}
