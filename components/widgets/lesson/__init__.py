"""The two widgets of a lesson's screen: its head with the way through the course, and its code with the question.

What was seen and answered is kept by the browser, under `glassbox-lessons`; the server never learns of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import gradio as gr

from components.widgets.widget import widget

_HEAD_TEMPLATE = """<div class="gb-course" hidden>
<nav><ol class="gb-steps"></ol></nav>
<p class="gb-progress"></p>
<div class="gb-lesson-title"><h2></h2><div class="gb-turn"><button type="button" class="gb-back"></button>
<button type="button" class="gb-on"></button></div></div>
<p class="gb-lesson-says"></p>
</div>"""
_BODY_TEMPLATE = """<div class="gb-lesson-body" hidden>
<h3 class="gb-code-title"></h3><div class="gb-code"></div>
<h3 class="gb-try-title"></h3><p class="gb-lesson-question"></p>
<details><summary></summary><p></p></details>
<button type="button" class="gb-lesson-go"></button>
</div>"""


def lesson_head(*, elem_id: str, keys: Sequence[str], view: str) -> gr.HTML:
    """The way through the course, title and sentence. keys: of the lessons, in order.

    Raises `.select` with a payload of {"lesson": index} when one is chosen, and when the widget appears without a
    lesson: for the last one that was open in this browser, or the first.

    Data of a view: index (from 0; None: no lesson is open), title, says, titles (of all lessons), progress (with
    {seen}, {answered}, {total}), labels ("name", "previous", "next", "seen", "answered").
    """
    return widget("lesson/head", elem_id, template=_HEAD_TEMPLATE, view=view, options={"keys": list(keys)})


def lesson_body(*, elem_id: str, keys: Sequence[str], view: str) -> gr.HTML:
    """Code, question, answer. Raises `.select` with a payload of {"open": True} for the button that goes to the place
    in the app.

    Data of a view: index (from 0; None: nothing is shown), code (a list of {"caption", "lines"}, each line pieces of
    (kind, text)), question, answer, show and open (the words of the buttons), labels ("code", "try").
    """
    return widget("lesson/body", elem_id, template=_BODY_TEMPLATE, view=view, options={"keys": list(keys)})
