"""Figures of the Compare tab: numpy in, plotly Figure out, in the style of components.figures.charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from plotly.graph_objects import Figure

from components.figures.charts import token_label
from components.figures.palette import MONO
from components.figures.style import LIGHT

_AXIS = {"zeroline": False, "ticks": "", "fixedrange": True}
_MOST_LABELS = 24


def divergence_bars(
    raw: np.ndarray,
    final: np.ndarray,
    tokens: Sequence[str],
    *,
    selected: int | None = None,
    raw_name: str = "of the models",
    final_name: str = "after the settings",
    bits_title: str = "bits",
) -> Figure:
    """A wide light and a narrow dark bar for each position: raw and final divergence, (N,), in bits.

    tokens: the N tokens before the predictions. An infinite `final` reaches the top and has an infinity sign. selected:
    the position to mark. Raises ValueError if the lengths differ.
    """
    raw, final = np.asarray(raw, dtype=np.float32), np.asarray(final, dtype=np.float32)
    if not len(raw) == len(final) == len(tokens):
        raise ValueError(f"{len(tokens)} tokens need as many numbers, not {len(raw)} and {len(final)}")
    finite = np.concatenate([raw, final[np.isfinite(final)]])
    top = 1.2 * (float(finite.max(initial=0)) or 1.0)
    endless = np.flatnonzero(np.isinf(final))
    labels = [token_label(token) for token in tokens]
    positions = list(range(0, len(labels), max(1, -(-len(labels) // _MOST_LABELS))))
    bars = {"type": "bar", "x": np.arange(len(raw), dtype=np.int32)}

    def bar_labels(values: np.ndarray) -> dict[str, Any]:
        rows = enumerate(zip(labels, values, strict=True))
        texts = [f"{label}  {i}: {'∞' if np.isinf(bits) else f'{bits:.3f}'} {bits_title}" for i, (label, bits) in rows]
        return {"customdata": texts, "hovertemplate": "%{customdata}"}

    line = {"color": LIGHT["accent"], "width": 1.5}
    mark = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "line": line}
    return Figure(
        {
            "data": [
                bars
                | bar_labels(raw)
                | {"y": raw, "width": 0.76, "name": raw_name, "marker": {"color": LIGHT["before"]}},
                bars
                | bar_labels(final)
                | {"y": np.where(np.isinf(final), top, final), "width": 0.36, "name": final_name}
                | {"marker": {"color": LIGHT["after"]}, "text": ["∞" if np.isinf(bits) else "" for bits in final]}
                | {"textposition": "outside", "cliponaxis": False, "textfont": {"color": LIGHT["text"], "size": 14}},
            ],
            "layout": {
                "template": {},
                "height": 240,
                "barmode": "overlay",
                "margin": {"l": 48, "r": 12, "t": 44 if len(endless) else 28, "b": 8},
                "xaxis": _AXIS
                | {"showgrid": False, "range": [-0.6, len(raw) - 0.4], "automargin": True, "tickangle": -90}
                | {"tickvals": positions, "ticktext": [labels[i] for i in positions]}
                | {"tickfont": {"family": MONO, "size": 11, "color": LIGHT["text"]}},
                "yaxis": _AXIS | {"gridcolor": LIGHT["line"], "range": [0, top], "title": {"text": bits_title}},
                "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "yref": "paper"}
                | {"itemclick": False, "itemdoubleclick": False, "font": {"size": 11}},
                "shapes": [] if selected is None else [mark | {"x0": selected - 0.5, "x1": selected + 0.5}],
                "hovermode": "x",
            },
        }
    )
