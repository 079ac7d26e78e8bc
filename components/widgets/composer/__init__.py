"""The box for writing: a textarea over a token-by-token copy of its text.

The copy also shows the predicted continuation and the words on which it depends.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """Return the box that draws `composer_data`. It raises four events:

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


def box_line(text: str, written: float | None, *, control: bool = False) -> str:
    """Return the line for one token.

    written: the token's probability, if the model wrote it. control: whether it is a control token.
    """
    line = [text, None if written is None else round(written, 3)]
    return to_json([*line, 1] if control else line)


def composer_data(
    lines: list[str],
    *,
    chat: bool = False,
    words: Sequence[int] = (),
    hidden: Sequence[int] = (),
    unwritten: str | None = None,
    selected: int = -1,
    ghost: str = "",
    arcs: Sequence[tuple[int, float]] = (),
    effects: Sequence[tuple[int, float, float]] = (),
    generating: bool = False,
    coming: int = 0,
    document: str = "",
    held: str = "",
    typed: str | None = None,
    n_after: int = 0,
    edited: float = 0.0,
    n: int = 0,
) -> dict[str, Any]:
    """Return the data for the box.

    Args:
        lines: Built by `box_line`.
        chat: Whether the text is the start of a conversation.
        words: The position at which each word begins.
        hidden: Positions of the hidden words.
        unwritten: The text in the box, if it differs from the text of the tokens.
        selected: The position before the prediction.
        ghost: The text that may come after the last token.
        arcs: (position, weight in 0..1) for each word that the prediction depends on.
        effects: (position, probability, probability without the word) of the prediction for each measured word.
        generating: Whether the text is being generated.
        coming: Number of tokens that the run may write; 0 if the text is not being generated.
        document: Identifies the text; a different one replaces typed text that the server has not handled yet.
        held: White space after the last token, which belongs to the next one.
        typed: The typed text from which this text was made, if they differ.
        n_after: Number of characters in this text that were added after the typed text.
        edited: The time of the last key press that this data reflects (see `composer`); later input is kept.
        n: The number of the last `.submit` that this data reflects; words hidden by later ones stay hidden.
    """
    return {
        "lines": lines,
        "chat": chat,
        "words": list(words),
        "hidden": list(hidden),
        "unwritten": unwritten,
        "selected": selected,
        "ghost": ghost,
        "arcs": [[position, round(weight, 4)] for position, weight in arcs],
        "effects": [[position, round(p, 6), round(q, 6)] for position, p, q in effects],
        "generating": generating,
        "coming": coming,
        "document": document,
        "held": held,
        "typed": typed,
        "n_after": n_after,
        "edited": edited,
        "n": n,
    }
