"""A film that follows one token through the model, on real vectors, with a camera over one picture."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<section class="gb-film" hidden>
<div class="gb-film-head"><h2></h2><button type="button" class="gb-film-close">×</button></div>
<div class="gb-film-stage" tabindex="0" role="group"><svg aria-hidden="true"></svg></div>
<div class="gb-film-says"><h3></h3><p aria-live="polite"></p></div>
<div class="gb-film-bar">
<button type="button" class="gb-film-back">‹</button>
<button type="button" class="gb-film-play">▶</button>
<button type="button" class="gb-film-forward">›</button>
<input type="range" min="0" step="0.05" value="0">
<output></output>
<button type="button" class="gb-film-leave"></button>
</div>
</section>"""


def film(name: str, **wired: Any) -> Part:
    """The film; hidden without beats.

    Space plays and pauses, the arrow keys go from beat to beat. `.input` has the payload {"beat"}, from 1, when another
    one is shown; `.select` has {"leave": bool, "beat"} when the film is closed: leave says that its part of the app is
    to be opened.

    Data of its view: labels, and the fields that `film/scene.js` and `film/film.js` list.
    """
    return widget("film", name, template=_TEMPLATE, **wired)
