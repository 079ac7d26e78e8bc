"""The film's stage: a dialog over the whole window. The browser plays the film from numbers that it gets once."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<dialog class="gb-film dark" tabindex="-1">
<header><h2></h2><button type="button" class="gb-film-close">✕</button></header>
<canvas aria-hidden="true"></canvas>
<p class="gb-film-says" aria-live="polite"></p>
<section class="gb-film-end" hidden><h2></h2>
<button type="button" data-next="hide"></button><button type="button" data-next="layer"></button>
<button type="button" data-next="challenge"></button><button type="button" class="gb-film-again"></button></section>
<div class="gb-film-bar">
<button type="button" class="gb-film-back">‹</button>
<button type="button" class="gb-film-play">▶</button>
<button type="button" class="gb-film-forward">›</button>
<div class="gb-film-time"><ol></ol><input type="range" min="0" step="0.05" value="0"></div>
<button type="button" class="gb-film-screen"><svg viewBox="0 0 16 16" width="16" height="16" \
aria-hidden="true"><path d="M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4"/></svg></button>
</div></dialog>"""


def film(name: str, **wired: Any) -> Part:
    """Return the film, which is closed if there are no data.

    `.select` has {"beat"}: the new beat's name, or None when the film is closed; then "next" may be "hide", "layer" or
    "challenge". Space plays and pauses; the arrow keys, PageUp and PageDown move between beats, Home and End to the
    first and the last; Escape closes the film.

    View data: as described in `film/film.js` and `film/paint.js`.
    """
    return widget("film", name, template=_TEMPLATE, **wired)
