"""Short links and QR codes.

The server keeps the newest queries until it stops, each under a short code derived from the query.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections import OrderedDict
from itertools import groupby
from typing import Any

import segno
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from components.limits import MAX_SHORT_LINKS

N_CHARS = 6
_queries: OrderedDict[str, str] = OrderedDict()  # oldest first
_lock = threading.Lock()


def shorten(query: str) -> str:
    """Return a short link to the page with this query, such as "s/k3x9ab", relative to the page's address."""
    digest = hashlib.sha256(query.encode()).digest()
    code = base64.b32encode(digest).decode().lower()[:N_CHARS]
    with _lock:
        _queries[code] = query
        _queries.move_to_end(code)
        while len(_queries) > MAX_SHORT_LINKS:
            _queries.popitem(last=False)
    return f"s/{code}"


def _answer(request: Request) -> Response:
    """Redirect to the linked page, or to the example if the link is no longer stored."""
    query = _queries.get(request.path_params["code"].lower())
    return RedirectResponse("../" if query is None else f"../?{query}", 302)


ROUTE = Route("/s/{code}", _answer, methods=["GET", "HEAD"])


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
