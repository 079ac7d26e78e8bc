"""Rows and columns of on-off switches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<div class="gb-toggle-grid" role="group"></div>"""


def toggle_grid(name: str, **wired: Any) -> Part:
    """Return the switches drawn from `toggle_grid_data`; without columns it is hidden.

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
    """Return the data of the switches.

    name: name of the whole grid for screen readers. rows, columns: labels beside and above the switches; a single row
    has no label. on, marked: (row, column) of the switches that are on, and of those with a frame. cell: name of a
    switch, with {row} and {column} for its labels.
    """
    return {
        "name": name,
        "rows": list(rows),
        "columns": list(columns),
        "on": sorted(on),
        "marked": sorted(marked),
        "cell": cell,
    }
