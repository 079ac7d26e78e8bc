"""The whole model in one picture: a row per token, from its embedding to the next token.

Strips and weights travel as base64 of uint8. The texts of the selected row's numbers come with them, so that hovering
asks the server nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from components.parts import Part
from components.widgets.encoding import to_base64
from components.widgets.widget import widget

_TEMPLATE = """<figure class="gb-flow">
<div class="gb-flow-scroll gb-sideways" role="group"><div class="gb-flow-stage">
<canvas aria-hidden="true"></canvas>
<div class="gb-flow-lane" hidden></div><div class="gb-flow-column" hidden></div>
<div class="gb-picks gb-picks-layer gb-flow-layer" role="group"></div>
<div class="gb-picks gb-picks-heads gb-flow-heads" role="group"></div>
<div class="gb-flow-parts" role="group"></div>
</div></div>
<div class="gb-flow-legend"><span class="gb-flow-ramp"></span><span class="gb-flow-scale"></span>
<button type="button" class="gb-flow-more"></button></div>
<figcaption><p class="gb-says"></p><p class="gb-note"></p></figcaption>
<div class="gb-tip gb-flow-tip" role="tooltip" hidden></div>
<div class="gb-flow-film gb-film" hidden>
<div class="gb-film-says"><small></small><h3></h3><p aria-live="polite"></p><details><summary></summary></details></div>
<div class="gb-film-bar">
<button type="button" class="gb-film-back">‹</button>
<button type="button" class="gb-film-play">▶</button>
<button type="button" class="gb-film-forward">›</button>
<input type="range" min="0" step="0.05" value="0">
<output></output>
<button type="button" class="gb-film-screen"><svg viewBox="0 0 16 16" width="16" height="16" \
aria-hidden="true"><path d="M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4"/></svg></button>
<button type="button" class="gb-film-leave"></button>
</div></div>
</figure>"""

PARTS = (
    *("tokens", "tok", "pos", "stack", "pre", "norm1", "q", "k", "weights", "v", "mix", "z", "after1", "att", "plus1"),
    *("mid", "norm2", "gate", "up", "ff", "after2", "out", "plus2", "post", "fin", "next"),
)  # from left to right; `stack` stands for the layers that are not opened. A model has some of them


def flow(name: str, **wired: Any) -> Part:
    """The picture. A click or an arrow key raises `.select` with a payload of one of {"position"}, {"layer"}, {"head"};
    the button raises it with {"rows"}, the film in it with {"beat"}: the name of another one, None when it is closed.
    The film raises `.input` when the token that it draws is to be written. Space plays and pauses, the arrow keys and
    PageUp and PageDown go from beat to beat, Escape closes it.

    Data of its view: labels, and the fields that `flow/scene.js` lists, of which `film/paint.js` describes the film;
    without tokens it shows nothing.
    """
    return widget("flow", name, template=_TEMPLATE, **wired)


def packed(values: np.ndarray, scale: float, *, signed: bool = True) -> str:
    """Base64 of uint8: -scale..scale onto 0..255 with zero at 127.5, or 0..scale onto 0..255; beyond is cut off."""
    share = np.clip(np.asarray(values, np.float64) / (scale or 1.0), -1.0 if signed else 0.0, 1.0)
    levels = np.round(127.5 + 127.5 * share if signed else 255 * share)
    return to_base64(levels.astype(np.uint8))
