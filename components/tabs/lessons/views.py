"""Views for the Lessons tab: a lesson's head, its code and questions, and its figure."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any

from components.i18n import Language, t
from components.render import Lines, View
from components.state.snapshot import Snapshot
from components.tabs.lessons.code_view import Excerpt, excerpt, printed
from components.tabs.lessons.course import BY_KEY, LESSONS
from components.tabs.lessons.lesson import Lesson
from components.tabs.lessons.questions import QUESTIONS, ChoiceQuestion, GoalQuestion, NumberQuestion
from components.tabs.lessons.state import LessonsState, Reply
from components.text_views import strip_labels
from components.widgets.chart import chart_data
from components.widgets.sentence import sentence_data
from gpt import PRESETS, GPTConfig, LoadedModel
from gpt.experiments.speed import next_token_cost


def lesson_views(loaded: LoadedModel) -> tuple[View, ...]:
    """Return the tab's views. `loaded` is the model that the texts describe."""

    def lesson(s: Snapshot) -> tuple[str, Language]:
        return s.state(LessonsState).lesson, s.language

    def question(s: Snapshot) -> tuple[Any, ...]:
        state = s.state(LessonsState)
        return state.lesson, state.replies, state.drawn, s.language

    def picture(s: Snapshot) -> tuple[Any, ...]:
        state = s.state(LessonsState)
        return state.lesson, state.result, s.language

    return (
        View("lesson-head", partial(head, loaded)),
        View("lesson-body", partial(body, loaded)),
        View("lesson-notice", notice),
        View("lesson-says", summary),
        View("lesson-strip", strip),
        View("lesson-chart", chart),
        View("lesson-table", table),
    )


def head(loaded: LoadedModel, s: Snapshot) -> dict[str, Any]:
    """Return the course navigation. If the index is None, the widget asks the visitor to choose a lesson."""
    lesson = BY_KEY.get(s.state(LessonsState).lesson)
    return {
        "index": None if lesson is None else LESSONS.index(lesson),
        "lessons": [
            {
                "title": t(f"lesson.{each.key}.title"),
                "says": lesson_text(each, "says", loaded),
                "part": t(f"lessons.part.{each.part}"),
                "words": each.words,
            }
            for each in LESSONS
        ],
        "has_film": lesson is not None and lesson.beat != "",
        "labels": _texts(s, *HEAD_LABELS),
    }


def body(loaded: LoadedModel, s: Snapshot) -> dict[str, Any]:
    """Return the lesson's code, and its questions with their answers."""
    state = s.state(LessonsState)
    lesson = BY_KEY.get(state.lesson)
    if lesson is None:
        return {"index": None}
    return {
        "index": LESSONS.index(lesson),
        "idea": [listing(printed(f"{MINIMAL}.{lesson.key}"))],
        "code": [listing(excerpt(code)) for code in lesson.code],
        "questions": [question_data(lesson, n, loaded, s) for n in range(1, len(QUESTIONS[lesson.key]) + 1)],
        "show": t("lessons.answer"),
        "open": t(f"lessons.open.{lesson.place.tab}"),
        "labels": _texts(s, "code", "runs", "try", "check", "number", "copy", "copied"),
    }


def listing(found: Excerpt) -> dict[str, Any]:
    """Return an excerpt from the source, with its location."""
    place = [found.file, found.name, t("lessons.line", line=found.line)] if found.name else [found.file]
    return {"caption": " · ".join(place), "lines": found.lines}


def question_data(lesson: Lesson, n: int, loaded: LoadedModel, s: Snapshot) -> dict[str, Any]:
    """Return a question with its kind and answer, and the verdict on the visitor's answer. `n` is 1-based."""
    state, question = s.state(LessonsState), QUESTIONS[lesson.key][n - 1]
    reply = state.replies.get(n, Reply())
    right = question.expected(loaded, state.values) if isinstance(question, NumberQuestion) else None
    values = {"right": "…" if right is None else f"{right:,g}"}

    def text(part: str) -> str:
        return lesson_text(lesson, part if n == 1 else f"{n}.{part}", loaded, **values)

    n_choices = question.n_choices if isinstance(question, ChoiceQuestion) else 0
    shown = reply.verdict or ("goal" if isinstance(question, GoalQuestion) else "")
    reason = text(reply.text) if reply.text else ""
    return {
        "kind": KINDS[type(question)],
        "question": text("question"),
        "choices": [text(f"choice.{n}") for n in range(1, n_choices + 1)],
        "verdict": reply.verdict,
        "feedback": t(f"lessons.{shown}", text=reason) if shown else "",
        "answer": text("answer"),
    }


MINIMAL = "gpt.experiments.minimal"
KINDS = {NumberQuestion: "number", ChoiceQuestion: "choice", GoalQuestion: "goal"}
HEAD_LABELS = ("name", "list", "find", "topic", "none", "place", "previous", "next", "film", "seen", "answered")


def _texts(s: Snapshot, *names: str) -> dict[str, str]:
    return {name: t(f"lessons.{name}") for name in names}


def lesson_text(lesson: Lesson, part: str, loaded: LoadedModel, **values: str) -> str:
    """Return one of a lesson's texts, with the model's values filled in."""
    return t(f"lesson.{lesson.key}.{part}", **facts(loaded.model.config), **values)


@lru_cache(maxsize=8)
def facts(config: GPTConfig) -> dict[str, str]:
    """Return a model's values for the lessons' texts.

    `times` is the ratio of GPT-2's multiplications without a KV cache to those with one.
    """
    gpt2 = PRESETS["gpt2"]
    cached, uncached = (next_token_cost(gpt2, gpt2.block_size, cached=cached) for cached in (True, False))
    return {
        "n_layer": str(config.n_layer),
        "n_embd": f"{config.n_embd:,}",
        "vocab_size": f"{config.vocab_size:,}",
        "chance": f"{100 / config.vocab_size:.2g}",
        "uniform": f"{math.log(config.vocab_size):.2f}",
        "times": f"{uncached.multiplications // cached.multiplications:,}",
    }


def notice(s: Snapshot) -> dict[str, Any]:
    """Explain why the figure does not match the controls."""
    return sentence_data(s.state(LessonsState).problem)


def summary(s: Snapshot) -> dict[str, Any]:
    """Show the figure's sentence, or a message while a model is being trained for the figure."""
    state = s.state(LessonsState)
    if state.drawn is not None:
        return {"text": state.drawn.summary}
    return {"text": t("lessons.learning") if state.learning else ""}


def strip(s: Snapshot) -> dict[str, Any]:
    """Show the tokens in the generated text."""
    state = s.state(LessonsState)
    lines = Lines() if state.drawn is None else state.drawn.strip
    return {"lines": lines, "doc": state.lesson, "labels": strip_labels()}


def chart(s: Snapshot) -> dict[str, Any]:
    drawn = s.state(LessonsState).drawn
    return chart_data(None, "") if drawn is None or drawn.chart is None else drawn.chart


def table(s: Snapshot) -> dict[str, Any]:
    drawn = s.state(LessonsState).drawn
    return {"rows": [] if drawn is None else drawn.table}
