"""What a model wrote at each moment of its training, with a slider over the moments, on which its loss is drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<figure class="gb-growth" hidden>
<figcaption><h2></h2><output></output></figcaption>
<p class="gb-growth-text"></p>
<div class="gb-growth-bar"><button type="button">▶</button>
<span><svg preserveAspectRatio="none" viewBox="0 0 100 100" aria-hidden="true"><path/></svg>
<input type="range" min="0" step="1" value="0"></span></div>
</figure>"""


def growth(name: str, **wired: Any) -> Part:
    """Return the picture, which is hidden if there are fewer than two moments.

    `.input` requests a moment with the payload {"moment"}, a 0-based index, if the server shows what belongs to it. The
    next moment is requested once the last one is shown.
    """
    return widget("growth", name, template=_TEMPLATE, latest=True, **wired)


def growth_data(
    title: str, moments: Iterable[tuple[int, str, float]], *, steps: int | None = None, moment: int | None = None
) -> dict[str, Any]:
    """Return the data.

    moments: step, text and validation loss in nats for each. steps: length of the training; defaults to the last step.
    moment: index of the one whose pictures the page shows; None if there are none.
    """
    rows = [[step, text, round(loss, 3)] for step, text, loss in moments]
    return {"title": title, "moments": rows, "steps": steps or (rows[-1][0] if rows else 0), "moment": moment}
