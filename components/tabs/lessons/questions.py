"""The questions of the lessons, and how an answer is checked: a number, a choice, or a state of the figure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from components.tabs.lessons.state import LessonsState
from gpt import LoadedModel
from gpt.tokenizer import prompt_ids

MAX_ANSWER_CHARS = 40


@dataclass(frozen=True)
class NumberQuestion:
    """Asks for a number. expected: of this model and of the figure's values by name, None before the figure is drawn;
    tolerance: largest accepted distance."""

    expected: Callable[[LoadedModel, dict[str, float]], float | None]
    tolerance: float = 1e-9

    def is_right(self, given: float, loaded: LoadedModel, values: dict[str, float]) -> bool:
        right = self.expected(loaded, values)
        return right is not None and abs(given - right) <= self.tolerance


@dataclass(frozen=True)
class ChoiceQuestion:
    """Asks for one of the texts `lesson.<key>.choice.<n>`, n from 1. right: the number of the right one."""

    right: int
    n_choices: int = 3


@dataclass(frozen=True)
class GoalQuestion:
    """Asks to bring the figure into a state. is_reached: whether it is."""

    is_reached: Callable[[LessonsState], bool]


Question = NumberQuestion | ChoiceQuestion | GoalQuestion


def constant(value: float, tolerance: float = 1e-9) -> NumberQuestion:
    """A number that is the same for every model."""
    return NumberQuestion(lambda loaded, values: value, tolerance)


def parse_number(text: object) -> float | None:
    """The number of a typed text; None for anything else. Accepts "−1", "10,000", "0,5" and "38.6 %"."""
    if not isinstance(text, str) or len(text) > MAX_ANSWER_CHARS:
        return None
    plain = text.strip().rstrip("%％").replace("−", "-").replace("，", ",").strip()
    head, comma, tail = plain.rpartition(",")
    is_decimal = comma and len(tail) != 3 and "." not in plain
    plain = f"{head}.{tail}" if is_decimal else plain.replace(",", "")
    try:
        number = float(plain)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def n_tokens(text: str) -> NumberQuestion:
    """The number of tokens of a text."""

    def expected(loaded: LoadedModel, values: dict[str, float]) -> float | None:
        try:
            return len(prompt_ids(loaded.tokenizer, text))
        except ValueError:  # a character that is not in the vocabulary
            return None

    return NumberQuestion(expected)


def of_figure(name: str) -> NumberQuestion:
    """A value of the figure."""
    return NumberQuestion(lambda loaded, values: values.get(name))


def chance_in_percent(loaded: LoadedModel, values: dict[str, float]) -> float:
    return 100 / loaded.model.config.vocab_size


def attends_to_previous(state: LessonsState) -> bool:
    """Whether the last token of the figure puts more than half of its attention on the token before it."""
    return state.values.get("on_previous", 0) > 0.5


QUESTIONS: dict[str, Question] = {
    "greedy": constant(12),
    "tokenizer": n_tokens("lily"),
    "sampling": GoalQuestion(lambda state: state.a == 0 or state.b == 1),
    "attention": GoalQuestion(attends_to_previous),
    "positions": ChoiceQuestion(1),
    "block": ChoiceQuestion(2),
    "layer_norm": constant(-1, 0.01),
    "feed_forward": NumberQuestion(lambda loaded, values: loaded.model.config.ff_size),
    "activations": GoalQuestion(lambda state: abs(state.a + 0.75) < 0.01),
    "shortcuts": constant(25, 2),
    "model": of_figure("settled"),
    "skeleton": ChoiceQuestion(3),
    "loss": constant(2, 0.01),
    "untrained": NumberQuestion(chance_in_percent, 0.005),
    "training": ChoiceQuestion(2),
    "dropout": constant(2),
    "layouts": constant(3),
    "small": constant(0),
    "initialisation": constant(0.204, 0.005),
    "parameters": constant(38.6, 0.6),
    "next": ChoiceQuestion(2),
    "configuration": constant(24),
    "rms_norm": constant(1.4, 0.005),
    "rotary": ChoiceQuestion(3),
    "swiglu": constant(8 / 3, 0.04),
    "grouped_queries": constant(4),
    "no_biases": constant(2112),
}
