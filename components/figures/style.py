"""What all figures have in common: the light theme's colours, quiet axes, a legend above, and text without markup.

The browser swaps the colours on the dark theme. Figures know neither gradio nor torch nor models.
"""

from __future__ import annotations

from components.figures.palette import MONO, PALETTE

LIGHT = {name: pair.light for name, pair in PALETTE.items()}
LABEL = {"family": MONO, "size": 12, "color": LIGHT["text"]}
SMALL = {"family": MONO, "size": 11}
QUIET = {"showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True}
# Else plotly measures every label, half of a chart's time, and leaves out those that reach over the edge.
ALL_LABELS = {"ticklabeloverflow": "allow"}
GRID = {"gridcolor": LIGHT["line"], "zeroline": False, "fixedrange": True}
GRID_ZERO = GRID | {"zeroline": True, "zerolinecolor": LIGHT["muted"], "zerolinewidth": 1}
LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "itemclick": False, "itemdoubleclick": False}


def escape(text: str) -> str:
    """Text of which plotly takes nothing for markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
