"""The tree of a beam search as it grows: one column per step, with candidates in descending order of probability.

Lines are only ever appended, so only new ones are sent: one per candidate, and one after each step for the best text
so far.
"""

from __future__ import annotations

from typing import Any, Literal

from components.parts import Part
from components.widgets.encoding import to_json
from components.widgets.widget import widget

_TEMPLATE = """<figure class="gb-beams">
<p class="gb-empty"></p>
<div class="gb-beams-scroll gb-sideways">
<div class="gb-beams-stage" role="group"><svg aria-hidden="true"></svg></div>
</div>
<ul class="gb-beams-legend"></ul>
<div class="gb-tip" role="tooltip" hidden></div>
</figure>"""

Outcome = Literal["kept", "pruned", "finished"]


def beams(name: str, **wired: Any) -> Part:
    """Return the tree. A click, Enter or Space on a candidate raises `.select` with the payload {"candidate": number}.

    View data: search (identifies the search; a new value replaces the tree), root (the end of the text that the search
    continues), chosen (the selected candidate; None for the best), lines (from `candidate_line` and `step_line`).
    """
    return widget("beams", name, template=_TEMPLATE, **wired)


def candidate_line(
    parent: int | None, text: str, depth: int, log_probability: float, total: float, score: float, outcome: Outcome
) -> str:
    """Return the line for the next candidate. Candidates are numbered in order, starting at 0.

    Logarithms are in nats; depth is 1-based.
    """
    numbers = [float(f"{value:.6g}") for value in (log_probability, total, score)]
    return _line([-1 if parent is None else parent, text, depth, *numbers, outcome])


def step_line(best: int | None, *, done: bool) -> str:
    """Return the line that closes a step.

    best: the last candidate of the best text so far; done: whether the search is complete.
    """
    return _line({"best": -1 if best is None else best, "done": done})


def _line(content: object) -> str:
    return to_json(content) + "\n"
