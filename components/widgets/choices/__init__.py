"""A short list of choices with a few cells each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<div class="gb-choices" role="group" hidden></div>"""


class Choice(NamedTuple):
    """One line: its cells, and the payload sent to the server when it is chosen. A single cell fills the whole line."""

    cells: tuple[str, ...]
    sent: dict[str, object]


def choices(name: str, **wired: Any) -> Part:
    """Return the part that draws `choices_data`; it is hidden if there are no lines.

    A click or Enter raises `.select` with the line's payload; the arrow keys move between lines.
    """
    return widget("choices", name, template=_TEMPLATE, **wired)


def choices_data(name: str, head: tuple[str, ...], lines: Sequence[Choice]) -> dict[str, Any]:
    """Return the data for a list. name: the list's name for screen readers; head: the columns' names."""
    return {"name": name, "head": head, "lines": [line._asdict() for line in lines]}
