"""The most probable next tokens as bars on a fixed axis from 0 to 100 %: options of a list, each of which can be
chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<figure class="gb-predictions">
<figcaption><h2></h2><p class="gb-says"></p></figcaption>
<div class="gb-bars" role="listbox"></div>
<div class="gb-axis" aria-hidden="true"><span>0%</span><span>50%</span><span>100%</span></div>
</figure>"""


class Bar(NamedTuple):
    """One token. before, after: its probability by the model, and after the sampling settings, in 0..1. name: for
    screen readers and as its tooltip. sent: what the server gets when it is chosen."""

    token: str
    before: float
    after: float
    name: str
    sent: dict[str, object]


def predictions(name: str, *, selectable: bool = True, **wired: Any) -> Part:
    """The bars of a view's `predictions_data`; without bars it takes the same room. If they are selectable, a click,
    Enter or Space on one raises `.select` with what it sends as payload."""
    options = {"selectable": selectable}
    return widget("predictions", name, template=_TEMPLATE, options=options, **wired)


def predictions_data(
    title: str, text: str, bars: Sequence[Bar], common: dict[str, object] | None = None, *, chosen: int = -1
) -> dict[str, Any]:
    """What the bars show. title: also the name of the list; text: the sentence beside it; common: sent with every bar;
    chosen: the index of the one that stands in the text, -1 for none."""
    listed = [[bar.token, float(f"{bar.before:.4g}"), float(f"{bar.after:.4g}"), bar.name, bar.sent] for bar in bars]
    return {"title": title, "text": text, "bars": listed, "common": common or {}, "chosen": chosen}
