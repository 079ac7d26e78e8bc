"""The figure of the merges of a word, in the style of components.figures.charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plotly.graph_objects import Figure

from components.figures.style import LIGHT, QUIET, SMALL, escape

_ROW = 26  # pixels


class Cell(NamedTuple):
    """One part of a word: its text, its width in bytes, whether this row's merge produced it, and its tooltip."""

    text: str
    width: int
    joined: bool = False
    tip: str = ""


def merge_ladder(rows: Sequence[Sequence[Cell]]) -> Figure:
    """One row per merge, from bytes at the top to tokens; the part that a row's merge produced is highlighted."""
    cells = [(row, start, cell) for row, line in enumerate(rows) for start, cell in _placed(line)]
    width = max((start + cell.width for _, start, cell in cells), default=1)
    return Figure(
        {
            "data": [
                {
                    "type": "bar",
                    "orientation": "h",
                    "y": [row for row, _, _ in cells],
                    "base": [start for _, start, _ in cells],
                    "x": [cell.width for _, _, cell in cells],
                    "width": 0.84,
                    "text": [escape(cell.text) for _, _, cell in cells],
                    "customdata": [escape(f"{cell.text} {cell.tip}".strip()) for _, _, cell in cells],
                    "textposition": "inside",
                    "insidetextanchor": "middle",
                    "textangle": 0,
                    "constraintext": "none",
                    "textfont": SMALL
                    | {"color": [LIGHT["on_primary"] if cell.joined else LIGHT["text"] for _, _, cell in cells]},
                    "marker": {
                        "color": [LIGHT["after"] if cell.joined else LIGHT["before"] for _, _, cell in cells],
                        "line": {"color": LIGHT["card"], "width": 2},
                    },
                    "hovertemplate": "%{customdata}<extra></extra>",
                }
            ],
            "layout": {
                "template": {},
                "height": _ROW * len(rows) + 8,
                "margin": {"l": 0, "r": 0, "t": 4, "b": 4},
                "barmode": "overlay",
                "xaxis": QUIET | {"showticklabels": False, "range": [0, width]},
                "yaxis": QUIET | {"showticklabels": False, "range": [len(rows) - 0.5, -0.5]},
                "hovermode": "closest",
            },
        }
    )


def _placed(line: Sequence[Cell]) -> list[tuple[int, Cell]]:
    """Each cell with its first byte."""
    placed, start = [], 0
    for cell in line:
        placed.append((start, cell))
        start += cell.width
    return placed
