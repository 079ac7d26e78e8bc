"""The most probable next tokens as bars that end in their probability. Each bar is an option in a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<figure class="gb-predictions">
<figcaption><h2></h2><p class="gb-says"></p></figcaption>
<div class="gb-bars" role="listbox"></div>
<p class="gb-others"></p>
</figure>"""


class Bar(NamedTuple):
    """The bar for one token.

    before, after: the token's probability according to the model and after the sampling settings, in 0..1. name: text
    for screen readers and the tooltip. sent: payload sent to the server when the bar is chosen.
    """

    token: str
    before: float
    after: float
    name: str
    sent: dict[str, object]


def predictions(name: str, *, selectable: bool = True, **wired: Any) -> Part:
    """Return the part that draws `predictions_data`; if there are no bars, their space stays reserved.

    If the bars are selectable, a click, Enter or Space on one raises `.select` with its payload.
    """
    options = {"selectable": selectable}
    return widget("predictions", name, template=_TEMPLATE, options=options, **wired)


def predictions_data(
    title: str,
    text: str,
    bars: Sequence[Bar],
    common: dict[str, object] | None = None,
    *,
    chosen: int = -1,
    others: str = "",
) -> dict[str, Any]:
    """Return the data for the bars.

    title: also the list's name; text: the sentence beside it; common: payload common to all bars; chosen: index of the
    token that follows in the text, -1 for none; others: the line below the first bars.
    """
    listed = [[bar.token, float(f"{bar.before:.4g}"), float(f"{bar.after:.4g}"), bar.name, bar.sent] for bar in bars]
    return {"title": title, "text": text, "bars": listed, "common": common or {}, "chosen": chosen, "others": others}
