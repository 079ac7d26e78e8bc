"""What a goal is: it says what the visitor sets, and judges it by the numbers of the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

from torch import Tensor

from components.labels import Later, percent, quoted
from components.tabs.challenges.reading import Head, Reading
from gpt import Edits
from gpt.tokenizer import Vocabulary

Tool = Literal["text", "token", "head", "switches", "layer", "place", "concepts", "feature"]  # a place: token and layer


@dataclass(frozen=True)
class Verdict:
    """key, values: of the sentence that says where the answer stands, `challenge.now.<key>`. score: of an answer that
    reaches the goal, where it can be exceeded."""

    key: str
    values: dict[str, Any] = field(default_factory=dict)
    done: bool = False
    score: int | None = None


class Arc(NamedTuple):
    """From a token to one that it attends to, both positions. weight: 0..1."""

    start: int
    end: int
    weight: float
    head: int


class Goal(ABC):
    """tool: what the visitor sets. shows_bars: whether the next tokens are shown. has_arcs: whether it has arcs."""

    tool: ClassVar[Tool]
    shows_bars: ClassVar[bool] = True
    has_arcs: ClassVar[bool] = False

    def edits(self, reading: Reading) -> Edits:
        """The interventions that the visitor has set."""
        return Edits(head_scale=dict.fromkeys(reading.answer.off, 0.0))

    def after(self, reading: Reading) -> Tensor:
        """(vocab_size,): probabilities of the next token with what the visitor has set."""
        return reading.after(self.edits(reading))

    @abstractmethod
    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        """after: see the method."""

    def arcs(self, reading: Reading) -> list[Arc]:
        """The arcs over the text."""
        return []

    def layers(self, n_layer: int) -> tuple[int, ...]:
        """The layers to choose from."""
        return tuple(range(n_layer))

    def marked(self, reading: Reading) -> tuple[Head, ...]:
        """The switches that are framed."""
        return ()


def first_id(tokenizer: Vocabulary, word: str) -> int:
    """The first token of a word that follows a text."""
    return tokenizer.encode_continuation(word)[0]


def name(reading: Reading, token_id: int | Tensor) -> Later:
    return Later(quoted, reading.tokenizer, int(token_id))


def share(p: float) -> Later:
    return Later(percent, p)
