"""What the two widgets of a lesson's screen show: its head, and its code with the question."""

from __future__ import annotations

import math
from functools import lru_cache

from components.i18n import Language, t
from components.tabs.lessons.code_view import excerpt
from components.tabs.lessons.course import LESSONS, Lesson
from components.widgets.encoding import to_json
from gpt import PRESETS, GPTConfig
from gpt.experiments.speed import next_token_cost


def head_value(index: int, language: Language, config: GPTConfig) -> str:
    """What `lesson_head` shows of the lesson with that index, from 0. config: of the model that it speaks of."""
    labels = {name: t(f"lessons.{name}", language) for name in ("name", "previous", "next", "seen", "answered")}
    return to_json(
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
    return to_json(
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
