"""Common style of all figures: light colours, axes, legend, escaped text.

The browser replaces the colours on the dark theme. Figures import neither gradio nor torch nor models.
"""

from __future__ import annotations

from typing import Any

from components.figures.palette import MONO, PALETTE

LIGHT = {name: pair.light for name, pair in PALETTE.items()}
LABEL: dict[str, Any] = {"family": MONO, "size": 12, "color": LIGHT["text"]}
SMALL = {"family": MONO, "size": 11}
QUIET = {"showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True}
# Otherwise plotly measures every label, half of a chart's time, and omits those that reach beyond the edge.
ALL_LABELS = {"ticklabeloverflow": "allow"}
GRID = {"gridcolor": LIGHT["line"], "zeroline": False, "fixedrange": True}
GRID_ZERO = GRID | {"zeroline": True, "zerolinecolor": LIGHT["muted"], "zerolinewidth": 1}
LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "itemclick": False, "itemdoubleclick": False}


def escape(text: str) -> str:
    """Text without markup for plotly."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
