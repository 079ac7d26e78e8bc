"""State of the Write tab, its examples and presets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from components.state.settings import LIMITS
from components.state.text import AtPosition
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
    """State of the Write tab.

    Attributes:
        too_long: Number of tokens in an overlong prompt, else 0.
        unit: Unit for the pipeline card.
        followed: Token followed through the stages; None for the default token.
        found: Search results in the pipeline card.

    Tokens are kept as (id, text), because the same id is another token in another model's vocabulary.
    """

    too_long: int = 0
    pipeline_open: bool = False
    unit: Unit = "probability"
    followed: tuple[int, str] | None = None
    found: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Reason(AtPosition):
    """What the prediction of `token` after a position depends on."""

    token: int
    causes: Causes


@dataclass(frozen=True)
class ReasonState:
    """The latest measured reason."""

    reason: Reason | None = None


def tail_length(block_size: int) -> int:
    """Return how many tokens to keep from an overlong prompt."""
    return max(1, block_size // 2)
