"""The base class for challenge goals. A goal defines what visitors can change and judges the result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

from torch import Tensor

from components.labels import Later, percent, quoted
from components.tabs.challenges.reading import Head, Reading
from gpt import Edits
from gpt.tokenizer import Vocabulary

# "place" means a token and a layer.
Tool = Literal["text", "token", "head", "switches", "layer", "place", "concepts", "feature"]


@dataclass(frozen=True)
class Verdict:
    """The verdict on an answer.

    Attributes:
        key, values: Key of the sentence `challenge.now.<key>`, and the values for its placeholders.
        done: Whether the goal has been reached.
        score: Score of a successful answer, for goals that can be exceeded.
    """

    key: str
    values: dict[str, Any] = field(default_factory=dict)
    done: bool = False
    score: int | None = None


class Arc(NamedTuple):
    """An attention arc from one position to another. The weight is between 0 and 1."""

    start: int
    end: int
    weight: float
    head: int


class Goal(ABC):
    """A challenge's goal.

    Attributes:
        tool: The kind of input that the goal requires.
        shows_bars, has_arcs: Whether the page shows the next-token bars and the arcs.
    """

    tool: ClassVar[Tool]
    shows_bars: ClassVar[bool] = True
    has_arcs: ClassVar[bool] = False

    def edits(self, reading: Reading) -> Edits:
        """Return the interventions that the visitor has set."""
        return Edits(head_scale=dict.fromkeys(reading.answer.off, 0.0))

    def after(self, reading: Reading) -> Tensor:
        """Return the next-token probabilities under the visitor's interventions, (vocab_size,)."""
        return reading.after(self.edits(reading))

    @abstractmethod
    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        """Judge an answer. `after` is the result of `Goal.after`."""

    def arcs(self, reading: Reading) -> list[Arc]:
        """Return the arcs to draw over the text."""
        return []

    def layers(self, n_layer: int) -> tuple[int, ...]:
        """Return the layers to choose from."""
        return tuple(range(n_layer))

    def marked(self, reading: Reading) -> tuple[Head, ...]:
        """Return the heads whose switches are highlighted."""
        return ()


def first_id(tokenizer: Vocabulary, word: str) -> int:
    """Return the id of the first token of a word that continues a text."""
    return tokenizer.encode_continuation(word)[0]


def name(reading: Reading, token_id: int | Tensor) -> Later:
    return Later(quoted, reading.tokenizer, int(token_id))


def share(p: float) -> Later:
    return Later(percent, p)
