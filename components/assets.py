"""Static assets for the page's head: styles, script modules and plotly.js as shipped with plotly.py.

The app serves them itself. Their URLs are relative, so they work behind a proxy path, and versioned, so browsers may
cache them indefinitely. Pass ROUTES to launch (`app_kwargs={"routes": ROUTES}`) and put HEAD into the page's head.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import posixpath
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs_version
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from components import classroom, monitoring
from components.downloads import ROUTE
from components.figures.style import DARK_PARTNERS
from components.gradio_workarounds import STOP_TIMERS
from components.i18n import LANGUAGES, Language, in_all_languages
from components.i18n.catalogue import CATALOGUES, FALLBACK, GLOSSARY
from components.labels import MARKS
from components.theme import CSS, FONTS, FONTS_URL

PLOTLY_URL = f"glassbox/plotly-{get_plotlyjs_version()}.min.js"

_FOLDER = Path(__file__).parent
_STYLES = [  # shared styles first
    path
    for part in ("cards/*.css", "widgets/*.css", "widgets/*/*.css", "classroom/*.css")
    for path in sorted(_FOLDER.glob(part))
]
_MORE = in_all_languages("more")  # label of gradio's button for tabs that do not fit
_WORDS = "".join(
    f":root:lang({language}) {{ --gb-more: {json.dumps(word, ensure_ascii=False)}; }}\n"
    for language, word in _MORE.items()
)
_STYLE = f"<style>{_WORDS}{CSS}{''.join(path.read_text(encoding='utf-8') for path in _STYLES)}</style>"
_IMPORT = re.compile(r'^import (?:(\{.*\}) from )?"([^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)
FIRST_WIDGETS = (  # widgets that the first view needs
    *("widgets/composer/composer.js", "widgets/menu/menu.js", "widgets/predictions/predictions.js"),
    *("widgets/sentence/sentence.js", "widgets/steer.js", "widgets/tokens/tokens.js"),
)


def bundles() -> dict[str, str]:
    """Bundle all script modules into two files.

    "first.js" contains what the first view needs; "more.js" loads after it.
    Each module becomes a function that returns its exports; it is called after the modules that it imports.
    """
    paths = sorted(path for path in _FOLDER.rglob("*.js") if path.name != "first_screen.js")
    sources = {path.relative_to(_FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    done: list[str] = []

    def bundle(names: Iterable[str]) -> str:
        parts: list[str] = []

        def add(name: str) -> None:
            if name in done:
                return
            source = sources[name]
            for _, imported in _IMPORT.findall(source):
                add(_module(name, imported))
            done.append(name)
            body = _IMPORT.sub(lambda found: _as_constants(name, *found.groups()), source)
            exported = ", ".join(_EXPORT.findall(source))
            parts.append(f'modules["{name}"] = (() => {{\n{_EXPORT.sub("", body)}return {{ {exported} }};\n}})();\n')

        for name in names:
            add(name)
        return "".join(parts)

    first = f"export const modules = {{}};\n{bundle(['page.js', *FIRST_WIDGETS])}"
    return {"first.js": first, "more.js": f'import {{ modules }} from "./first.js";\n{bundle(sources)}'}


def _module(importing: str, imported: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(importing), imported))


def _as_constants(importing: str, names: str | None, imported: str) -> str:
    """Convert an import statement to a `const` declaration."""
    return f'const {names.replace(" as ", ": ")} = modules["{_module(importing, imported)}"];' if names else ""


_KEY = re.compile(r'"([a-z_]+(?:\.\w+)+)"')
_PREFIX = re.compile(r"`([a-z_]+\.[\w.]*)\$\{")


def named_keys() -> tuple[set[str], set[str]]:
    """Return the catalogue keys that scripts name, and the beginnings of keys whose end is a value."""
    source = "".join(path.read_text(encoding="utf-8") for path in _FOLDER.rglob("*.js"))
    keys = {key for key in _KEY.findall(source) if not key.endswith(".js")}
    return keys, set(_PREFIX.findall(source))


def browser_catalogue(language: Language) -> dict[str, Any]:
    """Return what scripts say in a language: their texts by key, and the technical terms."""
    keys, beginnings = named_keys()
    texts = {**CATALOGUES[FALLBACK], **CATALOGUES[language]}
    named = {key for key in texts if {key, key.removesuffix(".one")} & keys or key.startswith(tuple(beginnings))}
    spacing = {key: texts[key] for key in ("language.spacing",) if key in texts}
    chosen = {key: texts[key] for key in sorted(named)}
    return {"language": language, "texts": chosen | spacing, "terms": GLOSSARY[language], "marks": MARKS}


_CATALOGUES = {
    f"{language}.json": json.dumps(browser_catalogue(language), ensure_ascii=False) for language in LANGUAGES
}
_BUNDLES = {name: text.encode() for name, text in {**bundles(), **_CATALOGUES}.items()}
_VERSION = hashlib.sha256(b"".join(_BUNDLES.values())).hexdigest()[:12]
_URL = f"glassbox/{_VERSION}/"
# The page's HTML calls `glassbox` before the modules have loaded, so calls wait in a queue.
_CALLS = f"""window.glassbox = {{
  options: {json.dumps({"chart": {"dark": DARK_PARTNERS, "plotly": PLOTLY_URL}, "page": {"languages": [*LANGUAGES]}})},
  waiting: [],
  card(...call) {{ this.waiting.push(() => window.glassbox.card(...call)); }},
  receive(...call) {{ this.waiting.push(() => window.glassbox.receive(...call)); }},
  opened() {{ this.waiting.push(() => window.glassbox.opened()); }},
  session() {{ return new Promise((answer) => this.waiting.push(() => answer(window.glassbox.session()))); }},
  arrive() {{ return new Promise((answer) => this.waiting.push(() => answer(window.glassbox.arrive()))); }},
}};
{{
  const note = ({{ timeStamp }}) => {{ window.glassbox.clicked = performance.timeOrigin + timeStamp; }};
  addEventListener("click", note, true); // gradio says that a tab is open somewhat after the click
}}"""
_SCRIPTS = f'<script>{STOP_TIMERS}{_CALLS}</script><script type="module" src="{_URL}first.js"></script>'
_PRELOADED = "".join(
    f'<link rel="preload" href="{FONTS_URL}/{name}.woff2" as="font" type="font/woff2" crossorigin>' for name in FONTS
)
HEAD = f"{_PRELOADED}{_STYLE}{_SCRIPTS}"
ON_OPEN = "() => glassbox.opened()"  # called by gradio after drawing the page


_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".json": "application/json"}
_CACHED = {"Cache-Control": "public, max-age=31536000, immutable"}


@lru_cache
def _packed(url: str) -> bytes:
    if url == PLOTLY_URL:
        script = files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
    else:
        script = _BUNDLES[url.removeprefix(_URL)]
    return gzip.compress(script, 6)


def _route(url: str) -> Route:
    def answer(request: Request) -> Response:
        headers = {**_CACHED, "Vary": "Accept-Encoding"}
        body = _packed(url)
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
        else:
            body = gzip.decompress(body)
        return Response(body, media_type=_MEDIA_TYPES[Path(url).suffix], headers=headers)

    return Route(f"/{url}", answer, methods=["GET", "HEAD"])


def _font_route(name: str) -> Route:
    def answer(request: Request) -> Response:
        return FileResponse(_FOLDER / "fonts" / f"{name}.woff2", media_type="font/woff2", headers=_CACHED)

    return Route(f"/{FONTS_URL}/{name}.woff2", answer, methods=["GET", "HEAD"])


ROUTES = [
    *map(_font_route, FONTS),
    *(ROUTE, *classroom.ROUTES, *monitoring.ROUTES),
    *(_route(url) for url in (PLOTLY_URL, *(_URL + name for name in _BUNDLES))),
]
