"""The draw of one token: a distribution laid end to end from 0 to 1, and where the number fell on it."""

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
    """What lies from where the piece before ends to `end`, in 0..1, and what is said of it; of several tokens, or of
    one."""

    end: float
    says: str
    is_several: bool = False


def draw(name: str, **wired: Any) -> Part:
    """The strip of a view's `draw_data`; without a text it takes no room. Pointer and arrow keys tell of each piece."""
    return widget("draw", name, template=_TEMPLATE, **wired)


def draw_data(
    text: str, pieces: Sequence[Piece] = (), *, number: float = 0.0, place: int = 0, mark: str = ""
) -> dict[str, Any]:
    """What a strip shows: a sentence, and, where there are pieces, the number that fell on the `place`-th of them, with
    the words at that mark."""
    return {"text": text, "pieces": list(pieces), "number": number, "place": place, "mark": mark}
