"""What the page's head brings along: the styles, and plotly.js as plotly.py ships it, served by the app itself.

The address is relative, so it holds behind a proxy's path too; it carries the version, so a browser may keep the
file for good; and it names no path of the server. Pass both to launch:
`launch(head=HEAD, app_kwargs={"routes": ROUTES})`.
"""

from __future__ import annotations

import gzip
from functools import lru_cache
from importlib.resources import files

from plotly.offline import get_plotlyjs_version
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from components import theme
from components.widgets import beams, chart, choices, draw, flow, heads, lines, stages, tokens, tree

PLOTLY_URL = f"glassbox/plotly-{get_plotlyjs_version()}.min.js"

_STYLED = (theme, chart, tokens, tree, draw, choices, flow, heads, stages, lines, beams)
_STYLE = f"<style>{''.join(part.CSS for part in _STYLED)}</style>"
_SCRIPT = f'<script src="{PLOTLY_URL}" data-glassbox="plotly" defer></script>'
HEAD = _STYLE + _SCRIPT


@lru_cache(maxsize=1)
def _packed() -> bytes:
    return gzip.compress(files("plotly").joinpath("package_data", "plotly.min.js").read_bytes(), 6)


def _plotly_js(request: Request) -> Response:
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    body = _packed()
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
    else:
        body = gzip.decompress(body)
    return Response(body, media_type="text/javascript", headers=headers)


ROUTES = [Route(f"/{PLOTLY_URL}", _plotly_js, methods=["GET", "HEAD"])]
