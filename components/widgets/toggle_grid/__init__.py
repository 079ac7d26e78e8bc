"""Rows and columns of on-off switches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<div class="gb-toggle-grid" role="group"></div>"""


def toggle_grid(name: str, **wired: Any) -> Part:
    """Return the part that draws `toggle_grid_data`; it is hidden if there are no columns.

    A click raises `.select` with the payload {"row", "column", "on": the new state}.
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
    """Return the data for the switches.

    name: the whole grid's name for screen readers. rows, columns: labels beside and above the switches; a single row
    has no label. on, marked: (row, column) of each switch that is on, and of each that is framed. cell: a switch's
    name, with {row} and {column} for its labels.
    """
    return {
        "name": name,
        "rows": list(rows),
        "columns": list(columns),
        "on": sorted(on),
        "marked": sorted(marked),
        "cell": cell,
    }
