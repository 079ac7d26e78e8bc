"""Figures of a model's size: numpy in, plotly Figure out, in the style of components.figures.charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from plotly.graph_objects import Figure

from components.figures.style import LIGHT

_ROW = 38  # pixels of one bar with its name above
_BAR = 0.4  # of a row
_QUIET = {"showgrid": False, "zeroline": False, "ticks": "", "showticklabels": False, "fixedrange": True}
_MAX_LINES = 64  # maximum number of blocks with separate lines


def part_bars(
    names: Sequence[str],
    counts: np.ndarray,
    labels: Sequence[str],
    *,
    ghosts: np.ndarray | None = None,
    blocks: np.ndarray | None = None,
) -> Figure:
    """Horizontal bars, the first on top: name and label above each.

    counts, (N,): the filled bars. ghosts, (N,): outlined bars for absent or shared parts. blocks, (N,): the number of
    equal segments of a bar, one per block of the model. Raises ValueError if the lengths differ.
    """
    return Figure(part_bars_content(names, counts, labels, ghosts=ghosts, blocks=blocks))


def part_bars_content(
    names: Sequence[str],
    counts: np.ndarray,
    labels: Sequence[str],
    *,
    ghosts: np.ndarray | None,
    blocks: np.ndarray | None,
) -> dict[str, Any]:
    """The content of `part_bars`, unchecked, for a chart of the initial page."""
    counts = np.asarray(counts, dtype=np.float64)
    ghosts = np.zeros_like(counts) if ghosts is None else np.asarray(ghosts, dtype=np.float64)
    blocks = np.ones_like(counts, dtype=int) if blocks is None else np.asarray(blocks, dtype=int)
    if not len(names) == len(labels) == len(counts) == len(ghosts) == len(blocks):
        raise ValueError(f"{len(names)} names need as many labels and bars, not {len(labels)} and {len(counts)}")
    rows = np.arange(len(counts))
    longest = float(max(counts.max(initial=0), ghosts.max(initial=0), 1e-9))
    bars = {"type": "bar", "orientation": "h", "width": _BAR, "hoverinfo": "skip", "showlegend": False}
    outline = {"color": "rgba(0,0,0,0)", "line": {"color": LIGHT["muted"], "width": 1}}
    cuts = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False}
    x, y = _cuts(counts, blocks)
    return {
        "data": [
            bars | {"y": rows, "x": ghosts, "marker": outline},
            bars | {"y": rows, "x": counts, "marker": {"color": LIGHT["after"]}},
            cuts | {"x": x, "y": y, "line": {"color": LIGHT["card"], "width": 1}},
        ],
        "layout": {
            "template": {},
            "height": _ROW * len(rows) + 8,
            "barmode": "overlay",
            "margin": {"l": 0, "r": 0, "t": 8, "b": 0},
            "xaxis": _QUIET | {"range": [0, longest]},
            "yaxis": _QUIET | {"range": [len(rows) - 0.7, -0.7]},
            "annotations": [
                note
                for row, name, label in zip(rows.tolist(), names, labels, strict=True)
                for note in (_note(row, 0, "left", name), _note(row, 1, "right", label))
            ],
        },
    }


def _cuts(counts: np.ndarray, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lines between the segments of the bars as one path with gaps."""
    x: list[float] = []
    y: list[float] = []
    for row, (count, n) in enumerate(zip(counts, blocks, strict=True)):
        if not 1 < n <= _MAX_LINES:
            continue
        for place in count * np.arange(1, n) / n:
            x += [place, place, np.nan]
            y += [row - _BAR / 2, row + _BAR / 2, np.nan]
    return np.array(x, dtype=np.float32), np.array(y, dtype=np.float32)


def _note(row: int, x: float, side: str, text: str) -> dict[str, Any]:
    place = {"x": x, "xref": "paper", "xanchor": side, "y": row - _BAR / 2, "yanchor": "bottom", "showarrow": False}
    return place | {"text": text, "font": {"size": 12, "color": LIGHT["text"]}, "borderpad": 0}
