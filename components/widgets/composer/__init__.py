"""The box for writing: a textarea over a token-by-token copy of its text.

The copy also shows the predicted continuation and the words on which it depends.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from components.parts import Part
from components.widgets.widget import to_json, widget

_TEMPLATE = """<div class="gb-composer"><div class="gb-sheet">
<div class="gb-copy" role="toolbar"></div>
<svg aria-hidden="true"></svg>
<span class="gb-effect" aria-hidden="true"></span>
<textarea spellcheck="false" autocomplete="off" autocapitalize="off"></textarea>
</div></div>"""


def composer(name: str, *, leads: bool = False, answers: bool = False, **wired: Any) -> Part:
    """Return the box. Its data is `EMPTY` with what differs. It raises four events:

    - `.input`, shortly after a person has typed, with "text", "edited" (the time of the last key press in ms),
      "document" (as in the data), "run" (the time of the first edit that one undo takes back) and "before" (a text,
      "edited" and "run" for each earlier run of edits that the server has not handled)
    - `.select`, when the caret moves to another token, with {"index": position}
    - `.submit`, when a word is clicked, with {"hidden": [positions]}, the first position of each word to hide,
      "edited" as in the data, and "n", which counts these events
    - `.undo`, when a person undoes or, with {"redo": true}, redoes something with the keyboard or the browser's menu

    leads: whether the page's undo includes this text, which raises the last event, and whether the page is stale and
    elements of the class gb-live are inert while the text in the box is newer than the data. answers: whether the text
    is the answer to a challenge.
    """
    return widget("composer", name, template=_TEMPLATE, options={"leads": leads, "answers": answers}, **wired)


@lru_cache(maxsize=10_000)
def box_line(text: str, written: float | None, *, control: bool = False) -> str:
    """written: the token's probability, if the model wrote it. control: whether it is a control token."""
    line = [text, None if written is None else round(written, 3)]
    return to_json([*line, 1] if control else line)


# The data of an empty box, as documented in composer.js. `lines` are built by `box_line`.
EMPTY: dict[str, Any] = {
    "lines": [],
    "chat": False,
    "words": [],
    "hidden": [],
    "unwritten": None,
    "selected": -1,
    "ghost": "",
    "arcs": [],
    "effects": [],
    "generating": False,
    "coming": 0,
    "document": "",
    "held": "",
    "typed": None,
    "n_after": 0,
    "edited": 0.0,
    "n": 0,
}
