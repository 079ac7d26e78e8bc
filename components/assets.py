"""What the page's head brings along: styles, the widgets' scripts, plotly.js as plotly.py ships it, and `quicker.js`.

The app serves them itself. Addresses are relative, so they hold behind a proxy's path too; they carry the version, so a
browser may keep the files for good; and they name no path of the server. Pass both to launch:
`launch(head=HEAD, app_kwargs={"routes": ROUTES})`.
"""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from plotly.offline import get_plotlyjs_version
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from components import theme
from components.widgets import (
    beams,
    chart,
    choices,
    draw,
    flow,
    heads,
    layers,
    lines,
    sentence,
    stages,
    switches,
    table,
    tokens,
    tree,
)
from components.widgets.script import fingerprint, scripts

PLOTLY_URL = f"glassbox/plotly-{get_plotlyjs_version()}.min.js"

_UNSTYLED = (sentence, table)  # their scripts come along with the others'
_STYLED = (theme, chart, tokens, tree, draw, choices, flow, layers, heads, switches, stages, lines, beams)
_STYLE = f"<style>{''.join(part.CSS for part in _STYLED)}</style>"
_PLOTLY = f'<script src="{PLOTLY_URL}" data-glassbox="plotly" defer></script>'
WIDGETS_URL = f"glassbox/widgets-{fingerprint()}.js"
_WIDGETS = f'<script src="{WIDGETS_URL}"></script>'


def _gradio_modules() -> dict[str, str]:
    """The addresses of the modules that `quicker.js` mends, by a method of theirs, where gradio is built as it was."""
    methods = {"statustracker-": "resolve_args", "core-": "find_attached_events"}
    return {
        method: f"assets/{file.name}"
        for file in files("gradio").joinpath("templates", "frontend", "assets").iterdir()
        for beginning, method in methods.items()
        if file.name.startswith(beginning) and file.name.endswith(".js") and method in file.read_text(encoding="utf-8")
    }


MODULES = _gradio_modules()
_QUICKER = Path(__file__).with_name("quicker.js").read_text(encoding="utf-8").replace("MODULES", json.dumps(MODULES))
HEAD = f"{_STYLE}<script>{_QUICKER}</script>{_WIDGETS}{_PLOTLY}"


@lru_cache
def _packed(url: str) -> bytes:
    if url == WIDGETS_URL:
        return gzip.compress(scripts().encode(), 6)
    return gzip.compress(files("plotly").joinpath("package_data", "plotly.min.js").read_bytes(), 6)


def _javascript(request: Request) -> Response:
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    body = _packed(f"glassbox/{request.url.path.rpartition('/')[2]}")
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
    else:
        body = gzip.decompress(body)
    return Response(body, media_type="text/javascript", headers=headers)


ROUTES = [Route(f"/{url}", _javascript, methods=["GET", "HEAD"]) for url in (PLOTLY_URL, WIDGETS_URL)]
