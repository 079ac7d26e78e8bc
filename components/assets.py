"""Static assets of the page's head: styles, script modules and plotly.js as shipped with plotly.py.

The app serves them itself. Addresses are relative, so they work behind a proxy path, and versioned, so browsers may
cache them indefinitely. Pass both to launch: `launch(head=HEAD, app_kwargs={"routes": ROUTES})`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from plotly.offline import get_plotlyjs_version
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from components import monitoring
from components.downloads import ROUTE
from components.i18n import LANGUAGES, t
from components.theme import CSS
from components.widgets.chart import PAGE_OPTIONS

PLOTLY_URL = f"glassbox/plotly-{get_plotlyjs_version()}.min.js"

_FOLDER = Path(__file__).parent
_STYLES = [  # shared styles first
    path for part in ("cards/*.css", "widgets/*.css", "widgets/*/*.css") for path in sorted(_FOLDER.glob(part))
]
_MORE = {language: t("more", language) for language in LANGUAGES}  # gradio's button of the tabs without room
_WORDS = "".join(
    f":root:lang({language}) {{ --gb-more: {json.dumps(word, ensure_ascii=False)}; }}\n"
    for language, word in _MORE.items()
)
_STYLE = f"<style>{_WORDS}{CSS}{''.join(path.read_text(encoding='utf-8') for path in _STYLES)}</style>"
_MODULES = {  # by the path in import statements
    path.relative_to(_FOLDER).as_posix(): path.read_bytes()
    for path in (
        *sorted(_FOLDER.glob("*.js")),
        *sorted(_FOLDER.glob("cards/*.js")),
        *sorted(_FOLDER.glob("widgets/**/*.js")),
    )
}
_VERSION = hashlib.sha256(b"".join(name.encode() + script for name, script in _MODULES.items())).hexdigest()[:12]
MODULES_URL = f"glassbox/{_VERSION}/"
# The page's HTML calls `glassbox` before the modules have loaded: calls wait in a queue.
_CALLS = f"""window.glassbox = {{
  options: {json.dumps({"chart": PAGE_OPTIONS})},
  waiting: [],
  mount(...call) {{ this.waiting.push(() => window.glassbox.mount(...call)); }},
  card(...call) {{ this.waiting.push(() => window.glassbox.card(...call)); }},
  receive(...call) {{ this.waiting.push(() => window.glassbox.receive(...call)); }},
  opened() {{ this.waiting.push(() => window.glassbox.opened()); }},
  session() {{ return new Promise((answer) => this.waiting.push(() => answer(window.glassbox.session()))); }},
  arrive(values) {{ return new Promise((answer) => this.waiting.push(() => answer(window.glassbox.arrive(values)))); }},
}};
{{
  const note = ({{ timeStamp }}) => {{ window.glassbox.clicked = performance.timeOrigin + timeStamp; }};
  addEventListener("click", note, true); // gradio says that a tab is open somewhat after the click
}}"""
_SCRIPTS = (
    f"<script>{_CALLS}</script>"
    + "".join(f'<link rel="modulepreload" fetchpriority="low" href="{MODULES_URL}{name}">' for name in _MODULES)
    + f'<script type="module" src="{MODULES_URL}page.js"></script>'
    + f'<script src="{PLOTLY_URL}" data-glassbox="plotly" defer></script>'
)


HEAD = f"{_STYLE}{_SCRIPTS}"
ON_OPEN = "() => glassbox.opened()"  # gradio calls it after drawing the page


@lru_cache
def _packed(url: str) -> bytes:
    if url == PLOTLY_URL:
        script = files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
    else:
        script = _MODULES[url.removeprefix(MODULES_URL)]
    return gzip.compress(script, 6)


def _route(url: str) -> Route:
    def answer(request: Request) -> Response:
        headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
        body = _packed(url)
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
        else:
            body = gzip.decompress(body)
        return Response(body, media_type="text/javascript", headers=headers)

    return Route(f"/{url}", answer, methods=["GET", "HEAD"])


ROUTES = [ROUTE, *monitoring.ROUTES, *(_route(url) for url in (PLOTLY_URL, *(MODULES_URL + name for name in _MODULES)))]
