"""A short list of things to choose from, a few cells each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<div class="gb-choices" role="group" hidden></div>"""


class Choice(NamedTuple):
    """One line: its cells, and what the server gets when it is chosen. A single cell takes the whole line."""

    cells: tuple[str, ...]
    sent: dict[str, object]


def choices(name: str, **wired: Any) -> Part:
    """The list of a view's `choices_data`; without lines it takes no room.

    A click or Enter raises `.select` with what the line sends as payload; the arrow keys go from line to line.
    """
    return widget("choices", name, template=_TEMPLATE, **wired)


def choices_data(name: str, head: tuple[str, ...], lines: Sequence[Choice]) -> dict[str, Any]:
    """What a list shows. name: for screen readers; head: the names of the columns."""
    return {"name": name, "head": head, "lines": [line._asdict() for line in lines]}
