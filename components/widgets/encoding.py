"""Encoding of data for the browser."""

from __future__ import annotations

import base64
import json

import numpy as np
from plotly.utils import PlotlyJSONEncoder


def to_json(content: object) -> str:
    """Return compact ASCII JSON. NumPy numbers and arrays are allowed, and NaN becomes null.

    Lone surrogates are preserved. The result contains no `<`, because gradio warns about anything that looks like a
    tag.

    Raises:
        TypeError: If JSON cannot represent a value.
    """
    return json.dumps(content, cls=PlotlyJSONEncoder, separators=(",", ":")).replace("<", "\\u003c")


def to_base64(*arrays: np.ndarray) -> str:
    """Return the concatenated bytes of the arrays in base64, little-endian."""
    parts = (np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes() for array in arrays)
    return base64.b64encode(b"".join(parts)).decode("ascii")
