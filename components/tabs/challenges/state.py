"""The state of the Challenges tab."""

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
    """What is to be judged. model: the name of the loaded one."""

    challenge: str
    answer: Answer
    model: str
    loaded: LoadedModel = field(compare=False)


@dataclass(frozen=True, eq=False)
class Judged:
    """after: (vocab_size,), probabilities of the next token with the visitor's interventions."""

    reading: Reading
    after: Tensor
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class ChallengesState:
    """challenge: the key of the open one, "" for none. edited: when the text was typed, in ms of the browser's clock.
    attempts: answers so far. result: the newest one, which may be of an earlier answer or another challenge."""

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
    """The open challenge with its newest result; None before there is one."""
    state = s.state(ChallengesState)
    challenge, judged = BY_KEY.get(state.challenge), latest(state)
    return None if challenge is None or judged is None else (challenge, judged)


def latest(state: ChallengesState) -> Judged | None:
    """The newest result of the open challenge."""
    result = state.result
    if result is None or not isinstance(result.request, JudgeInputs) or result.request.challenge != state.challenge:
        return None
    return result.value
