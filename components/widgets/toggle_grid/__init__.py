"""Rows and columns of switches that are on or off."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<div class="gb-toggle-grid" role="group"></div>"""


def toggle_grid(name: str, **wired: Any) -> Part:
    """The switches of a view's `toggle_grid_data`; without columns it takes no room.

    A click raises `.select` with a payload of {"row", "column", "on": the new state}.
    """
    return widget("toggle_grid", name, template=_TEMPLATE, **wired)


def toggle_grid_data(
    name: str,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    on: Collection[tuple[int, int]] = (),
    marked: Collection[tuple[int, int]] = (),
    cell: str = "",
) -> dict[str, Any]:
    """name: of all of them, for screen readers. rows, columns: what stands beside and above; a single row has nothing
    beside. on, marked: (row, column) of those that are on, and that are framed. cell: the name of a switch, with {row}
    and {column} for what stands beside and above."""
    return {
        "name": name,
        "rows": list(rows),
        "columns": list(columns),
        "on": sorted(on),
        "marked": sorted(marked),
        "cell": cell,
    }
