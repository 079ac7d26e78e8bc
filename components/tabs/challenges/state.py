"""State of the Challenges tab."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from components.panels.panel import Result
from components.state.snapshot import Snapshot
from components.tabs.challenges.goals.goal import Verdict
from components.tabs.challenges.reading import Answer, Reading
from components.tabs.challenges.table import BY_KEY, Challenge
from gpt import LoadedModel


@dataclass(frozen=True)
class JudgeInputs:
    """The inputs to a judgement. `model` is the name of the loaded model."""

    challenge: str
    answer: Answer
    model: str
    loaded: LoadedModel = field(compare=False)


@dataclass(frozen=True, eq=False)
class Judged:
    """A judged answer. after: next-token probabilities with the visitor's interventions, (vocab_size,)."""

    reading: Reading
    after: Tensor
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class ChallengesState:
    """State of the Challenges tab.

    Attributes:
        challenge: Key of the open challenge; "" if none is open.
        edited: Time of the last edit by the browser's clock, in milliseconds.
        attempts: Number of answers so far.
        result: The latest result, which may belong to an earlier answer or to another challenge.
    """

    challenge: str = ""
    answer: Answer = field(default_factory=lambda: Answer(""))
    edited: float = 0.0
    attempts: int = 0
    result: Result[Judged] | None = None

    @property
    def n_bytes(self) -> int:
        judged = None if self.result is None else self.result.value
        return 0 if judged is None else judged.reading.trace.n_bytes


def shown(s: Snapshot) -> tuple[Challenge, Judged] | None:
    """Return the open challenge with its latest result, or None if either is missing."""
    state = s.state(ChallengesState)
    challenge, judged = BY_KEY.get(state.challenge), latest(state)
    return None if challenge is None or judged is None else (challenge, judged)


def latest(state: ChallengesState) -> Judged | None:
    """Return the latest result for the open challenge, if any."""
    result = state.result
    if result is None or not isinstance(result.request, JudgeInputs) or result.request.challenge != state.challenge:
        return None
    return result.value
