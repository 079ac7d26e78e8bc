"""The two widgets around a challenge: its head with the way through all of them, and its foot with the verdict.

What was opened and solved is kept by the browser, under `glassbox-challenges`; the server never learns of it.
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
    """The way through the challenges, title and goal.

    Raises `.select` with a payload of {"challenge": key} when one is chosen, and when the widget appears without an
    open one: for the last one that was open in this browser, or the first.

    Data of a view: open (the key; None: no challenge is open), title, goal, groups (a list of {"name", "items"}, each
    item {"key", "title"}), labels ("name", "seen", "solved", "progress" with {n} and {total}).
    """
    return widget("challenge/head", name, template=_HEAD_TEMPLATE, **wired)


def challenge_foot(name: str, **wired: Any) -> Part:
    """Verdict, hint, what was learned, and the next challenge. Raises `.select` with a payload of {"challenge": key} or
    {"again": True}.

    The best score is kept by the browser as well.

    Data of a view: open (as above), verdict, solved, score (None where there is none), attempts (a sentence), learned,
    hint, next (the key; None after the last), labels ("hint", "again", "link", "copied", "next", "record" with {n}).
    """
    return widget("challenge/foot", name, template=_FOOT_TEMPLATE, **wired)
