"""A small table of numbers. The first row and the first column are headers."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = '<table class="gb-table"></table>'


def table(name: str, *, words_from: int | None = None, **wired: Any) -> Part:
    """Return a table that shows the view's "rows". Each cell is text, never HTML.

    words_from: the first column with words instead of numbers.
    """
    return widget("table", name, template=_TEMPLATE, options={"words_from": words_from}, **wired)
