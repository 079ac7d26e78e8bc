"""What a model wrote at each moment of its training, with a slider over the moments. The browser has all of them."""

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
    """Return the picture, which is hidden if there are no moments."""
    return widget("growth", name, template=_TEMPLATE, **wired)


def growth_data(title: str, moments: Iterable[tuple[int, str, float]]) -> dict[str, Any]:
    """Return the data. moments: step, text and validation loss in nats for each."""
    return {"title": title, "moments": [[step, text, round(loss, 3)] for step, text, loss in moments]}
