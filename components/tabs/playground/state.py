"""The state of the tab Write, its examples and presets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from components.state.settings import LIMITS
from components.state.text import Text
from gpt.analysis.causes import Causes

Unit = Literal["probability", "log_probability", "logit"]
_DEFAULTS = {name: limit.default for name, limit in LIMITS.items()}
PRESETS: dict[str, dict[str, Any]] = {
    "greedy": _DEFAULTS | {"temperature": 0.0},
    "careful": _DEFAULTS | {"temperature": 0.5, "top_p": 0.9},
    "balanced": _DEFAULTS,
    "wild": _DEFAULTS | {"temperature": 1.5},
}


@dataclass(frozen=True)
class PlaygroundState:
    """too_long: number of tokens of a prompt that is too long, else 0. unit: of the pipeline card; followed: the token
    followed through the stages, None for the one that came next; found: results of its search."""

    too_long: int = 0
    pipeline_open: bool = False
    unit: Unit = "probability"
    followed: int | None = None
    found: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Reason:
    """What the prediction of `token` after a position of a text depends on. version: of the text."""

    version: tuple[int, int]
    position: int
    token: int
    causes: Causes

    def belongs_to(self, text: Text, position: int) -> bool:
        return self.version == text.version and self.position == position


@dataclass(frozen=True)
class ReasonState:
    """reason: the last one that was measured."""

    reason: Reason | None = None


def tail_length(block_size: int) -> int:
    """Number of tokens that a too long prompt is cut to."""
    return max(1, block_size // 2)
