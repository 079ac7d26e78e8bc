"""What the Lessons tab remembers of one visitor."""

from __future__ import annotations

from dataclasses import dataclass

from components.state.session import Snapshot


@dataclass(frozen=True)
class LessonsState:
    """lesson: the key of the one that is open, "" for none."""

    lesson: str = ""


def is_lesson_open(lesson: str, s: Snapshot) -> bool:
    """Whether that lesson is open."""
    return s.state(LessonsState).lesson == lesson
