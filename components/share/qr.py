"""QR codes as a path of an SVG picture."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import segno

BORDER = 4  # modules around the code, which readers need


def qr_code(text: str) -> dict[str, Any]:
    """The code of a text. size: of the picture with its border, in modules; path: of the dark modules.

    Raises ValueError for more than fits into a code, 2,953 bytes.
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
