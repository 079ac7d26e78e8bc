"""The views of the Lessons tab: the head of a lesson, its code and question, and its figure."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any

from components.i18n import Language, t
from components.panels.panel import problem_sentence
from components.render import Lines, View
from components.state.snapshot import Snapshot
from components.tabs.lessons.code_view import excerpt
from components.tabs.lessons.components import LessonsState
from components.tabs.lessons.course import BY_KEY, LESSONS, Lesson
from components.text_views import strip_labels
from components.widgets.chart import chart_data
from gpt import PRESETS, GPTConfig
from gpt.experiments.speed import next_token_cost


def lesson_views(config: GPTConfig) -> tuple[View, ...]:
    """The views of the tab. config: of the model in the texts."""

    def lesson(s: Snapshot) -> tuple[str, Language]:
        return s.state(LessonsState).lesson, s.language

    def picture(s: Snapshot) -> tuple[Any, ...]:
        state = s.state(LessonsState)
        return state.lesson, state.result, s.language

    return (
        View("lesson-head", lesson, partial(head, config)),
        View("lesson-body", lesson, partial(body, config)),
        View("lesson-notice", picture, notice),
        View("lesson-says", picture, summary),
        View("lesson-strip", picture, strip),
        View("lesson-chart", picture, chart),
        View("lesson-table", picture, table),
    )


def head(config: GPTConfig, s: Snapshot) -> dict[str, Any]:
    """The navigation of the course; an index of None lets the widget ask for a lesson."""
    lesson = BY_KEY.get(s.state(LessonsState).lesson)
    return {
        "index": None if lesson is None else LESSONS.index(lesson),
        "lessons": [
            {
                "title": t(f"lesson.{each.key}.title", s.language),
                "says": lesson_text(each, "says", s.language, config),
                "part": t(f"lessons.part.{each.part}", s.language),
            }
            for each in LESSONS
        ],
        "has_film": lesson is not None and lesson.beat != "",
        "labels": _texts(
            s, "name", "list", "find", "topic", "none", "place", "previous", "next", "film", "seen", "answered"
        ),
    }


def body(config: GPTConfig, s: Snapshot) -> dict[str, Any]:
    """The code of the lesson, its question and answer."""
    lesson = BY_KEY.get(s.state(LessonsState).lesson)
    if lesson is None:
        return {"index": None}
    found = [excerpt(code) for code in lesson.code]
    return {
        "index": LESSONS.index(lesson),
        "code": [
            {
                "caption": f"{each.file} · {each.name} · {t('lessons.line', s.language, line=each.line)}",
                "lines": each.lines,
            }
            for each in found
        ],
        "question": lesson_text(lesson, "question", s.language, config),
        "answer": lesson_text(lesson, "answer", s.language, config),
        "show": t("lessons.answer", s.language),
        "open": t(f"lessons.open.{lesson.place.tab}", s.language),
        "labels": _texts(s, "code", "try"),
    }


def _texts(s: Snapshot, *names: str) -> dict[str, str]:
    return {name: t(f"lessons.{name}", s.language) for name in names}


def lesson_text(lesson: Lesson, part: str, language: Language, config: GPTConfig) -> str:
    """The sentence, question or answer of a lesson, with the model's values filled in."""
    return t(f"lesson.{lesson.key}.{part}", language, **facts(config))


@lru_cache(maxsize=8)
def facts(config: GPTConfig) -> dict[str, str]:
    """Values for the texts of lessons: of this model, and `times`, the ratio of GPT-2's operations without and with a
    KV cache."""
    gpt2 = PRESETS["gpt2"]
    cached, uncached = (next_token_cost(gpt2, gpt2.block_size, cached=cached) for cached in (True, False))
    return {
        "n_layer": str(config.n_layer),
        "n_ff": f"{config.ff_size:,}",
        "vocab_size": f"{config.vocab_size:,}",
        "uniform": f"{math.log(config.vocab_size):.2f}",
        "times": f"{uncached.multiplications // cached.multiplications:,}",
    }


def notice(s: Snapshot) -> dict[str, Any]:
    """Why the figure does not match the controls."""
    return problem_sentence(s, s.state(LessonsState).problem)


def summary(s: Snapshot) -> dict[str, Any]:
    """The sentence of the figure, or a message while a model is trained for it."""
    state = s.state(LessonsState)
    if state.drawn is not None:
        return {"text": state.drawn.summary}
    return {"text": t("lessons.learning", s.language) if state.learning else ""}


def strip(s: Snapshot) -> dict[str, Any]:
    """The tokens of the generated text."""
    state = s.state(LessonsState)
    lines = Lines() if state.drawn is None else state.drawn.strip
    return {"lines": lines, "doc": state.lesson, "labels": strip_labels(s.language)}


def chart(s: Snapshot) -> dict[str, Any]:
    drawn = s.state(LessonsState).drawn
    return chart_data(None, "") if drawn is None or drawn.chart is None else drawn.chart


def table(s: Snapshot) -> dict[str, Any]:
    drawn = s.state(LessonsState).drawn
    return {"rows": [] if drawn is None else drawn.table}
