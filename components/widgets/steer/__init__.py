"""Concepts to turn up: a chip for each, a slider for the chosen one, and the text without and with the change."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<section class="gb-steer" hidden>
<h2></h2>
<div class="gb-steer-chips" role="group"></div>
<div class="gb-steer-slider" hidden>
<label></label><input type="range"><output></output>
<button type="button"></button>
<div class="gb-steer-ends" aria-hidden="true"><span></span><span></span></div>
</div>
<p class="gb-steer-note"></p>
<dl class="gb-steer-texts"></dl>
</section>"""


def steer(name: str, **wired: Any) -> Part:
    """Return the concept controls; without chips it is hidden.

    Raises `.select` with {"place": [layer, feature]} for a chip, with "strength" for the slider, and with
    {"more": true} and {"reset": true} for its buttons.

    View data:
        chips: of {"place", "name", "on"}.
        more: label of the button after the chips; without it there is no button.
        slider: {"place", "name", "value", "min", "max", "step"} of the chosen concept, if one is chosen.
        note: about that concept, if there is anything to say.
        texts: (label, text) pairs; the last one is the changed text.
        labels: "question", "weaker", "stronger", "reset", and for the slider above and below 0 "strength" and
            "weakened", where {n} stands for a number and a percentage.
    """
    return widget("steer", name, template=_TEMPLATE, latest=True, **wired)
