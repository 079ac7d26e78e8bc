"""Data on their way to the browser."""

from __future__ import annotations

import base64
import json

import numpy as np
from plotly.utils import PlotlyJSONEncoder


def to_json(content: object) -> str:
    """Compact ASCII JSON; numpy's numbers and arrays are allowed, and NaN becomes null.

    A lone surrogate survives it, and no `<` stands in it: gradio warns of what looks like a tag. Raises TypeError for
    what JSON cannot hold.
    """
    return json.dumps(content, cls=PlotlyJSONEncoder, separators=(",", ":")).replace("<", "\\u003c")


def to_base64(*arrays: np.ndarray) -> str:
    """The bytes of the arrays one after another, little-endian."""
    parts = (np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes() for array in arrays)
    return base64.b64encode(b"".join(parts)).decode("ascii")
