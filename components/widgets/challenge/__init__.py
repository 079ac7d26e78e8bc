"""The two widgets around a challenge: the head with the path through all challenges, and the foot with the verdict.

The browser keeps the opened and solved challenges in local storage, under `glassbox-challenges`. They are never sent to
the server.
"""

from __future__ import annotations

from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_HEAD_TEMPLATE = """<div class="gb-challenge" hidden>
<nav></nav>
<p class="gb-challenge-solved"></p>
<h2></h2>
<p class="gb-challenge-goal"></p>
</div>"""
_FOOT_TEMPLATE = """<div class="gb-challenge-foot" hidden>
<p class="gb-standing" role="status"></p>
<p class="gb-attempts"></p>
<p class="gb-learned"></p>
<details><summary></summary><p></p></details>
<div class="gb-turn"><button type="button" class="gb-again"></button>
<button type="button" class="gb-copy-link"></button><button type="button" class="gb-on"></button></div>
</div>"""


def challenge_head(name: str, **wired: Any) -> Part:
    """Return the path through the challenges, and the open challenge's title and goal.

    Raises `.select` with the payload {"challenge": key} when a challenge is chosen. If none is open when the widget
    appears, it raises the event for the last one opened in this browser, or else for the first.

    View data: open (the key; None if no challenge is open), title, goal, groups (a list of {"name", "items"}, where
    each item is {"key", "title"}).
    """
    return widget("challenge/head", name, template=_HEAD_TEMPLATE, **wired)


def challenge_foot(name: str, **wired: Any) -> Part:
    """Return the verdict, the hint, the explanation and the link to the next challenge.

    Raises `.select` with the payload {"challenge": key} or {"again": True}. The browser also stores the best score.

    View data: open (as above), verdict, solved, score (None if the goal has none), attempts (a sentence), learned,
    hint, next (the key; None after the last).
    """
    return widget("challenge/foot", name, template=_FOOT_TEMPLATE, **wired)
