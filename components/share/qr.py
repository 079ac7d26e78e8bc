"""QR codes as SVG paths."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import segno

BORDER = 4  # modules around the code, required by readers


def qr_code(text: str) -> dict[str, Any]:
    """Return the QR code for a text. size: width of the picture with its border, in modules; path: the dark modules.

    Raises:
        ValueError: If the text exceeds the 2,953 bytes that a QR code can hold.
    """
    matrix = segno.make(text, error="l", boost_error=True, micro=False).matrix
    runs = []
    for y, row in enumerate(matrix):
        x = 0
        for dark, modules in groupby(row):
            n = len(list(modules))
            if dark:
                runs.append(f"M{x + BORDER} {y + BORDER}h{n}v1h-{n}z")
            x += n
    return {"size": len(matrix) + 2 * BORDER, "path": "".join(runs)}
