"""State of the Lessons tab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from components.i18n import Language
from components.panels.panel import Result
from components.state.snapshot import Snapshot
from components.tabs.lessons.pictures.picture import Drawn

Verdict = Literal["", "right", "wrong", "unreadable"]


class Reply(NamedTuple):
    """The reply to an answer. `text` names the lesson's text that explains the mistake; "" for none."""

    verdict: Verdict = ""
    text: str = ""


class FigureInputs(NamedTuple):
    """The inputs to a figure: its lesson, the values of its controls, and whether exact numbers are shown."""

    lesson: str
    language: Language
    text: str
    a: float
    b: float
    choice: str
    exact: bool


@dataclass(frozen=True)
class LessonsState:
    """State of the Lessons tab.

    Attributes:
        lesson: Key of the open lesson; "" for none.
        text, a, b, choice: Values of the figure's controls.
        learning: Whether drawing takes seconds because a model is being trained.
        result: The latest figure, possibly with a more recent error; ignored if it belongs to another lesson.
        replies: Reply to the last answer to each question, keyed by the question's 1-based number.
    """

    lesson: str = ""
    text: str = ""
    a: float = 0
    b: float = 0
    choice: str = ""
    learning: bool = False
    result: Result[Drawn] | None = None
    replies: Mapping[int, Reply] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, float]:
        """The figure's values that the questions ask for."""
        return {} if self.drawn is None else self.drawn.values

    @property
    def drawn(self) -> Drawn | None:
        """The open lesson's figure."""
        return None if self.result is None or not self._is_open(self.result) else self.result.value

    @property
    def problem(self) -> ValueError | None:
        """The reason the open lesson's figure does not match the controls."""
        return None if self.result is None or not self._is_open(self.result) else self.result.problem

    def _is_open(self, result: Result[Drawn]) -> bool:
        return isinstance(result.request, FigureInputs) and result.request.lesson == self.lesson


def is_lesson_open(lesson: str, s: Snapshot) -> bool:
    """Return whether this lesson is open."""
    return s.state(LessonsState).lesson == lesson
