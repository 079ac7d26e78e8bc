"""JSON on its way to the browser."""

from __future__ import annotations

import json

from plotly.utils import PlotlyJSONEncoder


def to_json(content: object) -> str:
    """Compact ASCII JSON; numpy's numbers and arrays are allowed, and NaN becomes null.

    A lone surrogate survives it, and no `<` stands in it: gradio warns of what looks like a tag. Raises TypeError for
    what JSON cannot hold.
    """
    return json.dumps(content, cls=PlotlyJSONEncoder, separators=(",", ":")).replace("<", "\\u003c")
