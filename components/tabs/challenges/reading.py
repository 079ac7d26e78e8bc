"""A visitor's answer to a challenge, the model's forward pass over its text, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from components.errors import PageError
from components.i18n import t
from components.labels import Later, percent, quoted
from components.next_tokens import at_one
from gpt import Edits, LoadedModel, Patch, Trace, trace_text
from gpt.analysis.concepts import Concepts
from gpt.analysis.heads import CopyCircuit, copy_circuit
from gpt.analysis.patching import patch_from
from gpt.sampling import keep_only
from gpt.tokenizer import Vocabulary, hold_back, prompt_ids

Head = tuple[int, int]  # (layer, head)
# What a visitor uses; "place" means a token and a layer.
Tool = Literal["text", "token", "head", "switches", "layer", "place", "concepts", "feature"]
MAX_TOKENS = 96


@dataclass(frozen=True)
class Answer:
    """tried: heads that have been switched off while all others were on. token: the picked position."""

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

    def name(self, token_id: int | Tensor) -> Later:
        return Later(quoted, self.tokenizer, int(token_id))

    @torch.inference_mode()
    def predicted(self, ids: Sequence[int], edits: Edits | None = None) -> Tensor:
        """Return the next-token probabilities after a text under the given interventions, (vocab_size,)."""
        idx = torch.tensor([list(ids)], device=self.loaded.model.device)
        only = self.tokenizer.ids_after(self.held if tuple(ids) == self.ids else "")
        return at_one(keep_only(self.loaded.model(idx, edits=edits)[0, -1], only))

    def after(self, edits: Edits) -> Tensor:
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


class Verdict:
    """The verdict on an answer.

    key, values: the sentence `challenge.now.<key>`, and the values for its placeholders; a float is a probability. The
    value "score" is that of a successful answer, for goals that can be exceeded.
    """

    def __init__(self, key: str, done: bool = False, **values: Any) -> None:
        self.key, self.done, self.values = key, done, values

    def __str__(self) -> str:
        shown = {name: percent(value) if isinstance(value, float) else value for name, value in self.values.items()}
        return t(f"challenge.now.{self.key}", **shown)


class Arc(NamedTuple):
    """An attention arc from one position to another. The weight is between 0 and 1."""

    start: int
    end: int
    weight: float
