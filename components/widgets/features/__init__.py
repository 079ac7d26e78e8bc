"""A text, and the features that are active at one of its words, each of which tints the text while it is pointed at."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<div class="gb-features">
<div class="gb-features-text" role="listbox"></div>
<div class="gb-features-list" role="listbox"></div>
</div>"""


def features(name: str, **wired: Any) -> Part:
    """The text of a view and its features. A click on a word raises `.select` with {"index": position}, one on a
    feature with {"place": [layer, feature]}.

    Data of its view:
        tokens: of the text; selected: a position.
        features: of {"place", "name", "value", "says"}, value from 0 to 1. chosen: the place of one.
        tints: by "layer.feature", a byte for each token from position `first` on, in base64.
        labels: "text" and "list", for screen readers.
    """
    return widget("features", name, template=_TEMPLATE, **wired)
