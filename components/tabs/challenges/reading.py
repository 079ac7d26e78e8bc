"""A visitor's answer to a challenge, the model's forward pass over its text, and the goal that judges it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from components.errors import PageError
from components.labels import Later, percent, quoted
from components.next_tokens import at_one
from gpt import Edits, LoadedModel, Patch, Trace, trace_text
from gpt.analysis.concepts import Concepts
from gpt.analysis.heads import CopyCircuit, copy_circuit
from gpt.analysis.patching import patch_from
from gpt.sampling import keep_only
from gpt.tokenizer import Vocabulary, hold_back, prompt_ids

Head = tuple[int, int]  # (layer, head)
MAX_TOKENS = 96


@dataclass(frozen=True)
class Answer:
    """The visitor's answer to a challenge.

    Attributes:
        tried: Heads that have been switched off while all others were on.
        head, token, layer, feature: The latest picks; `token` is a position.
    """

    text: str
    off: frozenset[Head] = frozenset()
    tried: frozenset[Head] = frozenset()
    head: Head | None = None
    token: int | None = None
    layer: int | None = None
    turned: tuple[tuple[tuple[int, int], float], ...] = ()
    feature: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class Reading:
    """One forward pass of the unedited model over an answer's text.

    Attributes:
        before: Next-token probabilities, (vocab_size,).
        held: White space at the end of the text, with which the next token begins.
    """

    loaded: LoadedModel
    start: str
    answer: Answer
    ids: tuple[int, ...]
    trace: Trace
    before: Tensor
    held: str = ""

    @classmethod
    @torch.inference_mode()
    def of(cls, loaded: LoadedModel, start: str, answer: Answer) -> Reading:
        """Read an answer's text. Raises ValueError if it is empty, too long or cannot be encoded."""
        text, held = hold_back(loaded.tokenizer, answer.text)
        ids = tuple(prompt_ids(loaded.tokenizer, text))
        if not ids:
            raise PageError("challenges.empty")
        if len(ids) > MAX_TOKENS:
            raise PageError("challenges.long", n=len(ids), limit=MAX_TOKENS)
        trace = trace_text(loaded.model, ids)
        logits = keep_only(loaded.model.logits(trace.final_norm[0, -1:])[0], loaded.tokenizer.ids_after(held))
        return cls(loaded, start, answer, ids, trace, at_one(logits), held)

    @property
    def tokenizer(self) -> Vocabulary:
        return self.loaded.tokenizer

    @property
    def concepts(self) -> Concepts:
        assert self.loaded.concepts is not None  # the bundled model has some
        return self.loaded.concepts

    @torch.inference_mode()
    def predicted(self, ids: Sequence[int], edits: Edits | None = None) -> Tensor:
        """Return the next-token probabilities after a text under the given interventions, (vocab_size,)."""
        idx = torch.tensor([list(ids)], device=self.loaded.model.device)
        only = self.tokenizer.ids_after(self.held if tuple(ids) == self.ids else "")
        return at_one(keep_only(self.loaded.model(idx, edits=edits)[0, -1], only))

    def after(self, edits: Edits) -> Tensor:
        """Return the next-token probabilities after this text under the given interventions, (vocab_size,)."""
        return self.before if edits == Edits() else self.predicted(self.ids, edits)

    def patch(self, name: str, token: int, layer: int, text: str | None = None) -> Patch:
        """Return a patch with the unedited model's activation at one token and layer of this text, or of `text`."""
        ids = self.ids if text is None else prompt_ids(self.tokenizer, text)
        return patch_from(self.loaded.model, ids, name, layer, token)

    def weights(self, head: Head) -> Tensor:
        return self.trace.layers[head[0]].attn_weights[0, head[1]].float().cpu()

    @cached_property
    def circuit(self) -> CopyCircuit:
        """The heads that copy an earlier token. Raises ValueError if the last token has not occurred before."""
        return copy_circuit(self.trace, self.ids)


# "place" means a token and a layer.
Tool = Literal["text", "token", "head", "switches", "layer", "place", "concepts", "feature"]


@dataclass(frozen=True)
class Verdict:
    """The verdict on an answer.

    Attributes:
        key, values: Key of the sentence `challenge.now.<key>`, and the values for its placeholders.
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


class Goal(ABC):
    """A challenge's goal.

    Attributes:
        tool: The kind of input that the goal requires.
        layers: The layers to choose from; () for all.
    """

    tool: ClassVar[Tool]
    shows_bars: ClassVar[bool] = True
    has_arcs: ClassVar[bool] = False
    layers: tuple[int, ...] = ()

    def edits(self, reading: Reading) -> Edits:
        return Edits(head_scale=dict.fromkeys(reading.answer.off, 0.0))

    def after(self, reading: Reading) -> Tensor:
        """Return the next-token probabilities under the visitor's interventions, (vocab_size,)."""
        return reading.after(self.edits(reading))

    @abstractmethod
    def judge(self, reading: Reading, after: Tensor) -> Verdict:
        """Judge an answer. `after` is the result of `Goal.after`."""

    def arcs(self, reading: Reading) -> list[Arc]:
        return []

    def marked(self, reading: Reading) -> tuple[Head, ...]:
        return ()


def first_id(tokenizer: Vocabulary, word: str) -> int:
    """Return the id of the first token of a word that continues a text."""
    return tokenizer.encode_continuation(word)[0]


def name(reading: Reading, token_id: int | Tensor) -> Later:
    return Later(quoted, reading.tokenizer, int(token_id))


def share(p: float) -> Later:
    return Later(percent, p)
