"""A small table of numbers: the first row names the columns, the first cell of each other row what it holds."""

from __future__ import annotations

from collections.abc import Sequence

import gradio as gr

from components.widgets.encoding import to_json
from components.widgets.widget import widget

_TEMPLATE = '<table class="gb-table"></table>'


def table(value: str = "", *, elem_id: str, words_from: int | None = None, view: str | None = None) -> gr.HTML:
    """A table whose value is a `table_value` string. words_from: the first of the columns that hold words.

    Data of a view: rows, of cells, each a text.
    """
    return widget("table", elem_id, template=_TEMPLATE, view=view, value=value, options={"words_from": words_from})


def table_value(rows: Sequence[Sequence[str]]) -> str:
    """The string that a table shows; every cell is text, never HTML."""
    return to_json(rows)
