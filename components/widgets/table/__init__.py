"""A small table of numbers: the first row names the columns, the first cell of each other row what it holds."""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = '<table class="gb-table"></table>'


def table(name: str, *, words_from: int | None = None, **wired: Any) -> Part:
    """The table of a view's "rows" of cells, each a text, never HTML.

    words_from: the first of the columns that hold words.
    """
    return widget("table", name, template=_TEMPLATE, options={"words_from": words_from}, **wired)
