"""A short text as tokens, with arcs from tokens to the tokens that they attend to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_TEMPLATE = """<div class="gb-arcs"><svg aria-hidden="true"></svg><div class="gb-arcs-text" role="group"></div></div>"""


def arcs(name: str, **wired: Any) -> Part:
    """Return the part that draws `arcs_data`; it is hidden if there are no tokens.

    Clicking a token raises `.select` with the payload {"index": position}.
    """
    return widget("arcs", name, template=_TEMPLATE, **wired)


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
