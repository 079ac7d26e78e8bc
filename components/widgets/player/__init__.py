"""A player for a series of moments, with play, back, forward and a scrubber. It shows every moment before moving on."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<div class="gb-film gb-player" role="group" hidden><div class="gb-film-bar">
<button type="button" class="gb-film-play">▶</button>
<button type="button" class="gb-film-back">‹</button>
<button type="button" class="gb-film-forward">›</button>
<input type="range" min="0" step="1" value="0">
<output></output>
</div></div>"""


def player(name: str, **wired: Any) -> Part:
    """Return the player; it is hidden if there are fewer than two moments.

    `.input` requests another moment with the payload {"moment"}, a 0-based index.

    View data: moments (their number), moment (the displayed one), text (that moment's name).
    """
    return widget("player", name, template=_TEMPLATE, latest=True, **wired)
