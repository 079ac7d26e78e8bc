"""The whole model in one picture: one row per token, from its embedding to the next token.

The texts for the selected row's numbers are sent along, so hovering needs no request.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from components.widgets.widget import to_base64, widget

_TEMPLATE = """<figure class="gb-flow">
<div class="gb-flow-scroll gb-sideways" role="group"><div class="gb-flow-stage">
<canvas aria-hidden="true"></canvas>
<div class="gb-flow-lane" hidden></div><div class="gb-flow-column" hidden></div>
<div class="gb-picks gb-picks-layer gb-flow-layer" role="group"></div>
<div class="gb-picks gb-picks-heads gb-flow-heads" role="group"></div>
<div class="gb-flow-parts" role="group"></div>
</div></div>
<div class="gb-flow-legend"><span class="gb-flow-ramp"></span><span class="gb-flow-scale"></span>
<button type="button" class="gb-flow-more gb-button"></button></div>
<figcaption><p class="gb-says"></p><p class="gb-note"></p></figcaption>
<div class="gb-tip gb-flow-tip" role="tooltip" hidden></div>
</figure>"""

PARTS = (
    *("tokens", "tok", "pos", "stack", "pre", "norm1", "q", "k", "weights", "v", "mix", "z", "after1", "att", "plus1"),
    *("mid", "norm2", "gate", "up", "ff", "after2", "out", "plus2", "post", "fin", "next"),
)  # from left to right; `stack` stands for the closed layers; each model has only some of these parts

# A click or an arrow key raises `.select` with one of {"position"}, {"layer"}, {"head"}; the button, with {"rows"}. The
# data is listed in `scene.js`.
flow = partial(widget, "flow", template=_TEMPLATE, latest=True)


def packed(values: np.ndarray, scale: float, *, signed: bool = True) -> str:
    """Encode values as uint8 in base64, clipped to -scale..scale or, if unsigned, to 0..scale."""
    share = np.clip(np.asarray(values, np.float64) / (scale or 1.0), -1.0 if signed else 0.0, 1.0)
    levels = np.round(127.5 + 127.5 * share if signed else 255 * share)
    return to_base64(levels.astype(np.uint8))
