"""One head in stages: eight pictures in a row, one of them enlarged, and the computation of one cell in it.

Vectors are sent as int16 in base64 with their scale, and scores and weights as float32, so changing the stage or the
cell needs no request.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from components.parts import Part
from components.widgets.widget import to_base64, widget

STAGES = ("q", "k", "raw", "scaled", "masked", "weights", "v", "z")

_TEMPLATE = """<figure class="gb-stages">
<div class="gb-picks-row"><div class="gb-picks gb-picks-layer" role="group"></div>
<div class="gb-picks gb-picks-heads" role="group"></div></div>
<div class="gb-stages-row" role="group"></div>
<div class="gb-stages-body">
<div class="gb-stages-picture">
<p class="gb-stages-what"></p>
<div class="gb-stages-large" tabindex="0" role="application"><canvas aria-hidden="true"></canvas></div>
<div class="gb-stages-legend"><span></span><span class="gb-stages-ramp"></span><span></span></div>
</div>
<div class="gb-stages-side">
<ol class="gb-stages-sum" aria-live="polite"></ol>
<div class="gb-stages-map" hidden><p class="gb-note"></p><canvas tabindex="0" role="application"></canvas></div>
</div>
</div>
<figcaption><p class="gb-says"></p><p class="gb-note"></p></figcaption>
<div class="gb-tip gb-stages-tip" role="tooltip" hidden></div>
</figure>"""


def stages(name: str, **wired: Any) -> Part:
    """Return the pictures.

    They raise `.select` with one of the payloads {"layer"}, {"head"}, {"position"}, {"position", "key"}.

    View data: the fields listed in `stages/stages.js`; the pictures are hidden if n_head is missing.
    """
    return widget("stages", name, template=_TEMPLATE, **wired)


def floats(values: np.ndarray) -> str:
    """Encode values as little-endian float32 in base64."""
    return to_base64(np.asarray(values, np.float32))


def shorts(vectors: np.ndarray) -> dict[str, Any]:
    """Encode vectors as int16 in base64, with the value that 32767 represents.

    The rounding error is at most 0.003% of the largest value.
    """
    scale = float(np.abs(vectors).max(initial=0)) or 1.0
    levels = np.round(vectors / scale * 32767).astype("<i2")
    return {"scale": scale, "data": to_base64(levels)}
