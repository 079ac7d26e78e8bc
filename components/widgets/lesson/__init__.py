"""The two widgets of a lesson's screen: a head with the path through the course, and a body with code and questions.

The browser keeps the viewed and answered lessons in local storage, under `glassbox-lessons`. They are never sent to the
server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.parts import Part
from components.widgets.widget import widget

_HEAD_TEMPLATE = """<div class="gb-course" hidden>
<nav><ol class="gb-parts"></ol></nav>
<details class="gb-contents"><summary></summary><input type="search"><p class="gb-topic"></p><ol></ol></details>
<div class="gb-lesson-title"><h2></h2><div class="gb-turn"><button type="button" class="gb-back"></button>
<button type="button" class="gb-on"></button></div></div>
<p class="gb-lesson-says"></p>
<button type="button" class="gb-lesson-film"></button>
</div>"""
_BODY_TEMPLATE = """<div class="gb-lesson-body" hidden>
<h3 class="gb-code-title"></h3><div class="gb-code gb-idea"></div>
<details class="gb-runs"><summary></summary><div class="gb-code"></div></details>
<h3 class="gb-try-title"></h3><ol class="gb-questions"></ol>
<button type="button" class="gb-lesson-go"></button>
</div>"""


def lesson_head(name: str, *, keys: Sequence[str], topics: Sequence[int], **wired: Any) -> Part:
    """Return the path through the course, with the open lesson's title and sentence.

    keys, topics: each lesson's key and topic, in order.

    Raises `.select` with the payload {"lesson": index} when a lesson is chosen. If none is open when the widget
    appears, it raises the event for the last one opened in this browser, or else for the first. The button that opens
    the film raises `.input`.

    View data: index (0-based; None if no lesson is open), lessons (a list of {"title", "says", "part", "words"},
    with "words" for synonyms in all languages), has_film.
    """
    options = {"keys": list(keys), "topics": list(topics)}
    return widget("lesson/head", name, template=_HEAD_TEMPLATE, options=options, **wired)


def lesson_body(name: str, *, keys: Sequence[str], **wired: Any) -> Part:
    """Return code, questions and answers.

    Raises `.input` with the payload {"question": 1-based number, "answer": typed text, or a choice's 1-based number},
    and `.select` for the button that goes to the corresponding place in the app.

    View data: index (0-based; None shows nothing), idea and code (lists of {"caption", "lines"}, each line made of
    (kind, text) pieces), questions (a list of {"question", "kind", "choices", "verdict", "feedback", "answer"}; kind is
    "number", "choice" or "goal", verdict "", "right", "wrong" or "unreadable"), show and open (the buttons' labels).
    """
    return widget("lesson/body", name, template=_BODY_TEMPLATE, options={"keys": list(keys)}, **wired)
