"""The factories of small widgets, in alphabetical order. Each widget's script has its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from components.parts import Part
from components.widgets.widget import widget

# A short text as tokens, with arcs from tokens to the tokens that they attend to.

_ARCS = """<div class="gb-arcs"><svg aria-hidden="true"></svg><div class="gb-arcs-text" role="group"></div></div>"""


def arcs(name: str, **wired: Any) -> Part:
    """Return the part that draws `arcs_data`; it is hidden if there are no tokens.

    Clicking a token raises `.select` with the payload {"index": position}.
    """
    return widget("arcs", name, template=_ARCS, **wired)


def arcs_data(
    tokens: Sequence[str],
    name: str,
    *,
    arcs: Sequence[tuple[int, int, float, int]] = (),
    n_head: int = 1,
    is_flat: bool = False,
    selectable: bool = False,
    selected: int = -1,
) -> dict[str, Any]:
    """Return the data for an arcs widget.

    tokens: texts of the tokens. name: the text's name for screen readers. arcs: (from, to, weight in 0..1, head), drawn
    in the head's colour. is_flat: whether to reserve no space for arcs. selected: the selected position, or -1.
    """
    return {
        "tokens": list(tokens),
        "name": name,
        "arcs": [[start, end, round(weight, 4), head] for start, end, weight, head in arcs],
        "n_head": n_head,
        "is_flat": is_flat,
        "selectable": selectable,
        "selected": selected,
    }


# A short list of choices with a few cells each.

_CHOICES = """<div class="gb-choices" role="group" hidden></div>"""


class Choice(NamedTuple):
    """One line: its cells, and the payload sent to the server when it is chosen. A single cell fills the whole line."""

    cells: tuple[str, ...]
    sent: dict[str, object]


def choices(name: str, **wired: Any) -> Part:
    """Return the part that draws `choices_data`; it is hidden if there are no lines.

    A click or Enter raises `.select` with the line's payload; the arrow keys move between lines.
    """
    return widget("choices", name, template=_CHOICES, **wired)


def choices_data(name: str, head: tuple[str, ...], lines: Sequence[Choice]) -> dict[str, Any]:
    """Return the data for a list. name: the list's name for screen readers; head: the columns' names."""
    return {"name": name, "head": head, "lines": [line._asdict() for line in lines]}


# Sampling one token: the probabilities laid end to end from 0 to 1, and where the random number falls.

_DRAW = """<figure class="gb-draw">
<figcaption class="gb-says"></figcaption>
<div class="gb-fell" aria-hidden="true"><span></span></div>
<div class="gb-pieces" tabindex="0" role="group"></div>
<div class="gb-ends" aria-hidden="true"><span>0</span><p></p><span>1</span></div>
<p class="gb-spoken" aria-live="polite"></p>
</figure>"""


class Piece(NamedTuple):
    """A piece of the strip, for one or more tokens.

    end: where the piece ends, in 0..1; it starts at the end of the previous one. says: its description.
    """

    end: float
    says: str
    is_several: bool = False


def draw(name: str, **wired: Any) -> Part:
    """Return the part that draws `draw_data`; it is hidden if there is no text.

    The pointer and arrow keys show each piece's description.
    """
    return widget("draw", name, template=_DRAW, **wired)


def draw_data(
    text: str, pieces: Sequence[Piece] = (), *, number: float = 0.0, place: int = 0, mark: str = ""
) -> dict[str, Any]:
    """Return the data for a strip: a sentence and, if there are pieces, the random number.

    number: the random number, which falls on piece `place`; mark: the number's label.
    """
    return {"text": text, "pieces": list(pieces), "number": number, "place": place, "mark": mark}


# A text, and the features that are active at one of its words. Pointing at a feature tints the text.

_FEATURES = """<div class="gb-features">
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
    return widget("features", name, template=_FEATURES, **wired)


# A player for a series of moments, with play, back, forward and a scrubber. It shows every moment before moving on.

_PLAYER = """<div class="gb-film gb-player" role="group" hidden><div class="gb-film-bar">
<button type="button" class="gb-film-play">▶</button>
<button type="button" class="gb-film-back">‹</button>
<button type="button" class="gb-film-forward">›</button>
<input type="range" min="0" step="1" value="0">
<output></output>
</div></div>"""


def player(name: str, **wired: Any) -> Part:
    """Return the player; it is hidden if there are fewer than two moments.

    `.input` requests another moment with the payload {"moment"}, a 0-based index.

    View data: moments (their number), moment (the displayed one), text (that moment's name).
    """
    return widget("player", name, template=_PLAYER, latest=True, **wired)


# Text snippets with tinted words.

_SNIPPETS = """<section class="gb-snippets"><h3></h3><ol></ol></section>"""


def snippets(name: str, **wired: Any) -> Part:
    """Return a list of snippets.

    View data:
        name: the title. snippets: lists of (word, level), with levels from 0 to 1.
    """
    return widget("snippets", name, template=_SNIPPETS, **wired)


# Concepts to turn up: a chip for each, a slider for the chosen one, and the text with and without the change.

_STEER = """<section class="gb-steer" hidden>
<h2></h2>
<div class="gb-steer-chips" role="group"></div>
<div class="gb-steer-slider" hidden>
<label></label><input type="range"><output></output>
<button type="button"></button>
<div class="gb-steer-ends" aria-hidden="true"><span></span><span></span></div>
</div>
<p class="gb-steer-note"></p>
<dl class="gb-steer-texts"></dl>
</section>"""


def steer(name: str, **wired: Any) -> Part:
    """Return the concept controls; they are hidden if there are no chips.

    Raises `.select` with {"place": [layer, feature]} for a chip, with an additional "strength" for the slider, and with
    {"more": true} or {"reset": true} for the buttons.

    View data:
        chips: a list of {"place", "name", "on"}.
        more: label of the button after the chips; if it is missing, there is no button.
        slider: {"place", "name", "value", "min", "max", "step"} for the chosen concept, if one is chosen.
        note: a remark about that concept, if there is one.
        texts: (label, text) pairs; the last one is the changed text.
    """
    return widget("steer", name, template=_STEER, latest=True, **wired)


# A small table of numbers. The first row and the first column are headers.

_TABLE = '<table class="gb-table"></table>'


def table(name: str, *, words_from: int | None = None, **wired: Any) -> Part:
    """Return a table that shows the view's "rows". Each cell is text, never HTML.

    words_from: the first column with words instead of numbers.
    """
    return widget("table", name, template=_TABLE, options={"words_from": words_from}, **wired)
