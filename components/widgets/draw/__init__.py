"""Sampling one token: the probabilities laid end to end from 0 to 1, and where the random number falls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<figure class="gb-draw">
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
    return widget("draw", name, template=_TEMPLATE, **wired)


def draw_data(
    text: str, pieces: Sequence[Piece] = (), *, number: float = 0.0, place: int = 0, mark: str = ""
) -> dict[str, Any]:
    """Return the data for a strip: a sentence and, if there are pieces, the random number.

    number: the random number, which falls on piece `place`; mark: the number's label.
    """
    return {"text": text, "pieces": list(pieces), "number": number, "place": place, "mark": mark}
