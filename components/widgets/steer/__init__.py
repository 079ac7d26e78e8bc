"""Concepts to turn up: a chip for each, a slider for the chosen one, and the text with and without the change."""

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
    """Return the concept controls; they are hidden if there are no chips.

    Raises `.select` with {"place": [layer, feature]} for a chip, with an additional "strength" for the slider, and with
    {"more": true} or {"reset": true} for the buttons.

    View data:
        chips: a list of {"place", "name", "on"}.
        more: label of the button after the chips; if it is missing, there is no button.
        slider: {"place", "name", "value", "min", "max", "step"} for the chosen concept, if one is chosen.
        note: a remark about that concept, if there is one.
        texts: (label, text) pairs; the last one is the changed text.
    """
    return widget("steer", name, template=_TEMPLATE, latest=True, **wired)
