"""A text, and the features that are active at one of its words. Pointing at a feature tints the text."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<div class="gb-features">
<div class="gb-features-text" role="listbox"></div>
<div class="gb-features-list" role="listbox"></div>
</div>"""


def features(name: str, **wired: Any) -> Part:
    """Return a text and its features.

    Clicking a word raises `.select` with {"index": position}; clicking a feature, with {"place": [layer, feature]}.

    View data:
        tokens: the text's tokens; selected: a position.
        features: a list of {"place", "name", "value", "says"}, with value in 0..1. chosen: one feature's place.
        tints: keyed by "layer.feature"; one byte per token from position `first`, in base64.
    """
    return widget("features", name, template=_TEMPLATE, **wired)
