"""The figure of the sampling pipeline: one line per token across the stages; numpy in, plotly out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from plotly.graph_objects import Figure

from components.figures.charts import token_label
from components.figures.palette import MONO
from components.figures.style import LIGHT

_HEIGHT, _TOP, _BOTTOM = 320, 8, 44
_LINE = 14  # pixels between two names


def stage_lines(
    labels: Sequence[str],
    token_ids: Sequence[int],
    values: np.ndarray,
    ends: Sequence[str],
    *,
    stages: Sequence[str],
    followed: int,
    title: str,
    percent: bool = False,
) -> Figure:
    """One line per token across the stages; it ends with a cross at the stage that removed the token.

    values: (tokens, stages), NaN where removed; the first stage is the raw input. ends: labels at the right end of the
    remaining lines, "" for the others. followed: the highlighted row. customdata of a point is its token id. Raises
    ValueError if the numbers of rows or columns differ.
    """
    values = np.asarray(values, np.float64)
    if values.shape != (len(labels), len(stages)) or not len(labels) == len(token_ids) == len(ends):
        raise ValueError(
            f"values of shape {values.shape} do not fit {len(labels)} tokens, {len(ends)} ends and {len(stages)} stages"
        )
    low, high = _range(values, percent)
    order = [row for row in range(len(labels)) if row != followed] + [followed]  # drawn last, on top
    lines = [_line(labels[row], token_ids[row], values[row], own=row == followed) for row in order]
    names = [token_label(label, longest=11) for label in labels]
    left = [_note(name, row == followed) for row, name in enumerate(names)]
    right = [_note(end, row == followed) for row, end in enumerate(ends)]
    gap = _LINE * (high - low) / (_HEIGHT - _TOP - _BOTTOM)
    notes = _beside(values[:, 0], left, gap, low, high, x=0, anchor="right")
    notes += _beside(
        np.where([bool(end) for end in ends], values[:, -1], np.nan), right, gap, low, high, x=1, anchor="left"
    )
    return Figure(
        {
            "data": lines,
            "layout": {
                "template": {},
                "height": _HEIGHT,
                "margin": {"l": 92, "r": 60, "t": _TOP, "b": _BOTTOM},
                "showlegend": False,
                "hovermode": "closest",
                "xaxis": {
                    "range": [0, len(stages) - 1],
                    "tickvals": list(range(len(stages))),
                    "ticktext": list(stages),
                    "tickfont": {"size": 11},
                    "tickangle": 0,
                    "showgrid": True,
                    "gridcolor": LIGHT["line"],
                    "zeroline": False,
                    "fixedrange": True,
                },
                "yaxis": {
                    "range": [low, high],
                    "showticklabels": False,
                    "showgrid": False,
                    "zeroline": False,
                    "fixedrange": True,
                    "title": {"text": title, "font": {"size": 11}, "standoff": 78},
                },
                "annotations": notes,
            },
        }
    )


def _range(values: np.ndarray, percent: bool) -> tuple[float, float]:
    """The range of the values with a margin; probabilities start at 0."""
    finite = values[np.isfinite(values)]
    low, high = (0.0, float(finite.max())) if percent else (float(finite.min()), float(finite.max()))
    room = 0.05 * ((high - low) or 1.0)
    return low - room, high + room


def _line(label: str, token_id: int, values: np.ndarray, *, own: bool) -> dict[str, Any]:
    alive = np.flatnonzero(np.isfinite(values))
    heights = values[: int(alive[-1]) + 1].tolist() if len(alive) else []
    symbols = ["circle"] * len(heights)
    if 0 < len(heights) < len(values):  # at its last height
        heights, symbols = [*heights, heights[-1]], [*symbols, "x"]
    colour = LIGHT["accent"] if own else LIGHT["after"]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(range(len(heights))),
        "y": heights,
        "customdata": [token_id] * len(heights),
        "line": {"color": colour, "width": 2.5 if own else 1.25},
        "marker": {
            "color": colour,
            "size": [8 if symbol == "x" else 4 for symbol in symbols],
            "symbol": symbols,
        },
        "opacity": 1.0 if own else 0.7,
        "cliponaxis": False,
        "hovertemplate": f"{token_label(label)}<br>%{{y:.4~g}}<extra></extra>",
    }


def _note(text: str, own: bool) -> dict[str, Any]:
    return {"text": text, "font": {"family": MONO, "size": 11, "color": LIGHT["accent" if own else "text"]}}


def _beside(
    heights: np.ndarray, notes: Sequence[dict[str, Any]], gap: float, low: float, high: float, *, x: int, anchor: str
) -> list[dict[str, Any]]:
    """Names beside the ends of lines, each as close to its own as possible without overlap."""
    rows = [row for row in np.argsort(-heights, kind="stable") if np.isfinite(heights[row])]
    heights_apart = spread(heights[rows], gap, low + gap / 2, high)
    fixed = {"xref": "paper", "x": x, "xanchor": anchor, "yanchor": "middle", "showarrow": False}
    fixed |= {"xshift": 8 if x else -8}
    return [notes[row] | fixed | {"y": place} for row, place in zip(rows, heights_apart, strict=True)]


def spread(heights: np.ndarray, gap: float, low: float, high: float) -> list[float]:
    """Descending heights moved apart to a distance of at least `gap`, within low..high if there is room."""
    heights_apart: list[float] = []
    for height in heights:
        heights_apart.append(min(float(height), heights_apart[-1] - gap if heights_apart else high))
    floor = low
    for i in reversed(range(len(heights_apart))):
        heights_apart[i] = max(heights_apart[i], floor)
        floor = heights_apart[i] + gap
    return heights_apart
