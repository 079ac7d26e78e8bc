"""A small table of numbers: the first row names the columns, the first cell of each other row what it holds."""

from __future__ import annotations

import json
from collections.abc import Sequence

import gradio as gr

from components.widgets.script import given, sent_once, widget

_SCRIPT = """
const table = element.querySelector("table");
const cell = (text, row, column) => {
  const made = document.createElement((row && column) || !text ? "td" : "th");
  if (made.tagName === "TH") made.scope = row ? "row" : "col";
  made.textContent = text;
  const words = given !== null && column >= given;
  if (words) Object.assign(made.style, { textAlign: "start", paddingLeft: "max(8px, 2vw)", whiteSpace: "normal" });
  return made;
};
const draw = () => {
  const rows = JSON.parse(props.value || "[]").map((texts, row) => {
    const made = document.createElement("tr");
    made.append(...texts.map((text, column) => cell(text, row, column)));
    return made;
  });
  table.replaceChildren(...rows);
};
watch("value", draw);
draw();
const around = element.closest(".block") ?? element;
const reached = new ResizeObserver(() => { // wider than its place, it is scrolled: with keys as well
  const wide = around.scrollWidth > around.clientWidth && getComputedStyle(around).overflowX === "auto";
  if (wide) around.tabIndex = 0;
  else around.removeAttribute("tabindex");
});
[around, table].forEach((part) => reached.observe(part));
"""
_CALL = sent_once("table", _SCRIPT)


def table(value: str = "", *, elem_id: str, view: str | None = None, words_from: int | None = None) -> gr.HTML:
    """A table whose value is a `table_value` string. words_from: the first of the columns that hold words."""
    return widget(value, '<table class="gb-table"></table>', given(_CALL, words_from), elem_id)


def table_value(rows: Sequence[Sequence[str]]) -> str:
    """The string that a table shows; every cell is text, never HTML."""
    return json.dumps(rows, separators=(",", ":")).replace("<", "\\u003c")
