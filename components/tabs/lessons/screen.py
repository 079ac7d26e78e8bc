"""The two widgets of a lesson's screen: its head with the way through the course, and its code with the question.

Both values are JSON, drawn by the widgets' own scripts with `textContent`. What was seen and answered is kept by the
browser, under `glassbox-lessons`; the server never learns of it.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import gradio as gr

from components.i18n import Language, t
from components.tabs.lessons.code_view import excerpt
from components.tabs.lessons.course import LESSONS, Lesson
from components.widgets.script import widget
from gpt import PRESETS, GPTConfig
from gpt.experiments import next_token_cost

_FOLDER = Path(__file__).parent
_PROGRESS = (_FOLDER / "progress.js").read_text(encoding="utf-8")
_HEAD = _PROGRESS + (_FOLDER / "head.js").read_text(encoding="utf-8")
_BODY = _PROGRESS + (_FOLDER / "body.js").read_text(encoding="utf-8")

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


def lesson_head(*, elem_id: str) -> gr.HTML:
    """The way through the course, title and sentence. `.select` raises {"lesson": index} when one is chosen, and for
    the first time when the widget appears: the lesson of the link, or the last one that was open."""
    return _widget(_HEAD_TEMPLATE, _HEAD, elem_id)


def lesson_body(*, elem_id: str) -> gr.HTML:
    """Code, question, answer. `.select` raises {"open": true} for the button that goes to the place in the app."""
    return _widget(_BODY_TEMPLATE, _BODY, elem_id)


def _widget(template: str, script: str, elem_id: str) -> gr.HTML:
    return widget("", template, script, elem_id, keys=[lesson.key for lesson in LESSONS])


def head_value(index: int, language: Language, config: GPTConfig) -> str:
    """What `lesson_head` shows of the lesson with that index, from 0. config: of the model that it speaks of."""
    labels = {name: t(f"lessons.{name}", language) for name in ("name", "previous", "next", "seen", "answered")}
    return _packed(
        {
            "index": index,
            "title": t(f"lesson.{LESSONS[index].key}.title", language),
            "says": told(LESSONS[index], "says", language, config),
            "titles": [t(f"lesson.{lesson.key}.title", language) for lesson in LESSONS],
            "progress": t("lessons.progress", language),
            "labels": labels,
        }
    )


def body_value(index: int, language: Language, config: GPTConfig) -> str:
    """What `lesson_body` shows of it."""
    lesson = LESSONS[index]
    found = [excerpt(code) for code in lesson.code]
    return _packed(
        {
            "index": index,
            "code": [
                {
                    "caption": f"{each.file} · {each.name} · {t('lessons.line', language, line=each.line)}",
                    "lines": each.lines,
                }
                for each in found
            ],
            "question": told(lesson, "question", language, config),
            "answer": told(lesson, "answer", language, config),
            "labels": {name: t(f"lessons.{name}", language) for name in ("code", "try")},
            "show": t("lessons.answer", language),
            "open": t(f"lessons.open.{lesson.place.tab}", language),
        }
    )


def told(lesson: Lesson, part: str, language: Language, config: GPTConfig) -> str:
    """The sentence, question or answer of a lesson, with what it says of the model filled in."""
    return t(f"lesson.{lesson.key}.{part}", language, **facts(config))


@lru_cache(maxsize=8)
def facts(config: GPTConfig) -> dict[str, str]:
    """What the words of a lesson may say: of this model, and `times`, what a KV cache saves GPT-2 at its last token."""
    gpt2 = PRESETS["gpt2"]
    cached, uncached = (next_token_cost(gpt2, gpt2.block_size, cached=cached) for cached in (True, False))
    return {
        "n_layer": str(config.n_layer),
        "n_ff": f"{config.ff_size:,}",
        "vocab_size": f"{config.vocab_size:,}",
        "uniform": f"{math.log(config.vocab_size):.2f}",
        "times": f"{uncached.multiplications // cached.multiplications:,}",
    }


def _packed(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
