"""The box that a text is written in: a textarea over a copy of the text, token by token, which shows what comes next
and the words that it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.parts import Part
from components.widgets.encoding import to_json
from components.widgets.widget import widget

_TEMPLATE = """<div class="gb-composer"><div class="gb-sheet">
<div class="gb-copy" role="toolbar"></div>
<svg aria-hidden="true"></svg>
<textarea spellcheck="false" autocomplete="off" autocapitalize="off"></textarea>
<p class="gb-invite" role="status" hidden></p>
</div></div>"""


def typed_js(name: str) -> str:
    """JavaScript: a function that returns the text of the box and the time of the last key in ms, as JSON."""
    return f"""() => {{
      const {{ value, dataset }} = document.querySelector("#{name} textarea");
      return JSON.stringify({{ text: value, edited: dataset.edited ?? 0 }});
    }}"""


def composer(name: str, **wired: Any) -> Part:
    """The box of a view's `composer_data`. Raises `.input` a moment after a person has typed, with a payload of "text",
    "edited" (the time of the last key in ms) and "document" (as in the data), `.select` with a payload of
    {"index": position} when the caret is put behind another token, and `.submit` with one of {"hidden": [positions]},
    the first ones of the words to hide, when a word is clicked."""
    return widget("composer", name, template=_TEMPLATE, **wired)


def box_line(text: str, written: float | None, *, control: bool = False) -> str:
    """The line of one token. written: the probability that it had, of a token that the model wrote. control: whether
    it is a control token."""
    line = [text, None if written is None else round(written, 3)]
    return to_json([*line, 1] if control else line)


def composer_data(
    lines: list[str],
    labels: dict[str, str],
    *,
    words: Sequence[int] = (),
    hidden: Sequence[int] = (),
    unwritten: str | None = None,
    selected: int = -1,
    ghost: str = "",
    arcs: Sequence[tuple[int, float]] = (),
    generating: bool = False,
    document: str = "",
    typed: str | None = None,
    n_after: int = 0,
    edited: float = 0.0,
) -> dict[str, Any]:
    """What the box shows.

    lines: of `box_line`. labels: "name" and "placeholder"; of the words to hide "words", "hide" and "show", both with
    {word}, and "invite". words: the position that each begins at. hidden: positions. unwritten: the text of the box if
    the tokens are of an older one. selected: the position that the prediction follows. ghost: the text that may come
    after the last token. arcs: (position, weight in 0..1) of the words that the prediction depends on. generating: the
    text grows by itself. document: names what the text is; another one replaces what was typed and not answered yet.
    typed: the typed text that became this text, if it is another one; the last n_after characters of the text were put
    after it. edited: the time of the last key that this answers, see `composer`; what is typed later stays.
    """
    return {
        "lines": lines,
        "labels": labels,
        "words": list(words),
        "hidden": list(hidden),
        "unwritten": unwritten,
        "selected": selected,
        "ghost": ghost,
        "arcs": [[position, round(weight, 4)] for position, weight in arcs],
        "generating": generating,
        "document": document,
        "typed": typed,
        "n_after": n_after,
        "edited": edited,
    }
