"""A player of moments: play, a step back and forward, and a scrubber. It waits for each moment to be shown."""

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
    """The player; hidden with fewer than two moments.

    `.input` has the payload {"moment"}, from 0, when another one is to be shown.

    Data of its view: moments (their number), moment (the displayed one), text (its name), labels (name, play, pause,
    back, forward).
    """
    return widget("player", name, template=_TEMPLATE, latest=True, **wired)
