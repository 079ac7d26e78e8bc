"""The prediction that the Causes tab explains, and a trace of the text around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

from components import kit
from components.i18n import t
from components.labels import percent, quoted, shortened, token_text
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.state.text import Text
from components.text_views import Tokens
from gpt import GPT, Edits, LoadedModel, SamplingParams, Trace, distribution
from gpt.analysis.lens import LENS_POINTS, LensPoint
from gpt.analysis.tracing import trace_window
from gpt.sampling import rank_of
from gpt.tokenizer import Vocabulary

ROLES = ("previous_token", "first_token", "same_token", "induction")
LENS_POSITIONS = 16  # positions in the lens
POSITIONS_AHEAD = 4  # lens positions after the selected one
MAX_CANDIDATES = 10  # tokens to choose from
MAX_NAME_CHARS = 12  # maximum length of a token's name

T = TypeVar("T")

tab = kit.Tab("why")


@dataclass(frozen=True)
class Question:
    """A token to explain, or None for the next one in the text, and a token to compare it with, at one position."""

    text: Text | None = None
    position: int | None = None
    token: int | None = None
    against: int | None = None


@dataclass(frozen=True)
class Prediction:
    """The prediction to explain: `token` after the token at `position`.

    follows: whether `token` is the next token in the text. best: the most likely tokens, best first. previous: the
    tokens up to and including the position. logits: after the position, (vocab_size,). held: typed white space with
    which the token begins (see `gpt.tokenizer.hold_back`).
    """

    position: int
    token: int
    rank: int
    follows: bool
    best: tuple[int, ...]
    previous: tuple[int, ...]
    logits: Tensor = field(compare=False, repr=False)
    held: str = ""

    def probabilities(self, settings: SamplingParams) -> Tensor:
        """Return the probability of every token with these settings, (vocab_size,)."""
        return distribution(self.logits, settings, previous_ids=self.previous).final


def choices(name: str, *values: str) -> Callable[[Snapshot], dict[str, str]]:
    return lambda s: {value: t(f"why.{name}.{value}") for value in values}


@tab.state
class Chosen:
    """by: the kind of nodes that the flow passes through. row: the lens's row; -1 for the last. watched: in the lens.

    off: keys of what is switched off in the flow, preceded by the prediction it belongs to.
    """

    by: str = kit.setting("heads", choices("by", "heads", "concepts"))
    method: str = kit.setting("hidden", choices("method", "hidden", "gradient"))
    stage: LensPoint = kit.setting("resid_post", choices("stage", *LENS_POINTS))
    order: str = kit.setting("size", choices("order", "size", "layer"))
    role: str = kit.setting(ROLES[0], choices("role", *ROLES))
    sample: str = kit.setting("text", choices("sample", "text", "noise"))
    row: int = -1
    question: Question = Question()
    watched: Tokens = ()
    off: tuple[Prediction | None, frozenset[str]] = (None, frozenset())


@dataclass(frozen=True, eq=False)
class Explained:
    """A prediction, and a trace of the text's positions from `first` up to but not including `end`."""

    text: Text
    edits: Edits | None
    first: int
    trace: Trace
    prediction: Prediction

    @property
    def loaded(self) -> LoadedModel:
        return self.text.loaded

    @property
    def model(self) -> GPT:
        return self.text.loaded.model

    @property
    def tokenizer(self) -> Vocabulary:
        return self.text.tokenizer

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids that the model has read."""
        return self.text.ids[: self.text.n_read]

    @property
    def end(self) -> int:
        return self.first + self.trace.final_norm.shape[1]

    @property
    def n_bytes(self) -> int:
        return self.trace.n_bytes

    @property
    def column(self) -> int:
        """The prediction's place in the trace."""
        return self.prediction.position - self.first

    @property
    def token_name(self) -> str:
        return quoted(self.tokenizer, self.prediction.token)

    @property
    def possible(self) -> Sequence[int]:
        """The ids that can follow typed white space (see `gpt.sampling.keep_only`)."""
        return self.tokenizer.ids_after(self.prediction.held)


def question_of(s: Any) -> Question:
    """Return the question that a visitor asked about the selected position, or an empty one."""
    asked: Question = s[Chosen].question
    return asked if (asked.text, asked.position) == (s.text, s.position) else Question()


def window_start(s: Any) -> int:
    """Return the first traced position. The window moves in steps, so that most clicks in it leave it where it is."""
    if s.text is None:
        return 0
    needed = s.position + 1 + POSITIONS_AHEAD - LENS_POSITIONS
    return max(0, min(-(-needed // POSITIONS_AHEAD) * POSITIONS_AHEAD, s.text.n_read - LENS_POSITIONS))


@tab.computed
def traced(s: Any) -> tuple[int, Trace]:
    """Trace a window of the text, and return its first position, too."""
    text, first = s.text_read(), s.watch(window_start)
    end = min(text.n_read, first + LENS_POSITIONS)
    return first, trace_window(text.loaded.model, text.ids[: text.n_read], first, end, text.document.edits)


@tab.computed
def explanation(s: Any) -> Explained:
    first, trace = s[traced]
    return Explained(s.text, s.text.document.edits, first, trace, predict(s.text, s.position, question_of(s).token))


def predict(text: Text, position: int, token: int | None = None) -> Prediction:
    """Return the prediction after a position. `token` defaults to the next one in the text, or else the likeliest."""
    logits = text.document.logits(position)
    ids = logits.topk(min(MAX_CANDIDATES, len(logits))).indices.tolist()
    follower = text.ids[position + 1] if position + 1 < len(text.ids) else None
    if token is None:
        token = ids[0] if follower is None else follower
    return Prediction(
        position=position,
        token=token,
        rank=int(rank_of(logits, torch.tensor([token], device=logits.device))),
        follows=token == follower,
        best=tuple(ids),
        previous=text.ids[: position + 1],
        logits=logits,
        held=text.document.held_after(position),
    )


def about(function: Callable[[Any, Explained], T]) -> Callable[[Any], T]:
    return wraps(function)(lambda s: function(s, s[explanation]))


def latest(session: Session) -> Explained | None:
    found: Explained | None = session.snapshot()[explanation]
    return found


def short(tokenizer: Vocabulary, token_id: int) -> str:
    return shortened(token_text(tokenizer, token_id), MAX_NAME_CHARS)


def tokens(s: Any) -> list[tuple[str, int]]:
    """Return (label, id) pairs for the likeliest tokens, the next one in the text, and the one to explain."""
    if kit.no_text(s):
        return []
    e = s[explanation]
    position, p = e.prediction.position, e.prediction.probabilities(s.settings.sampling())
    others = dict.fromkeys([e.prediction.token, *e.text.ids[position + 1 : position + 2]])
    named = [(f"{short(e.tokenizer, i)}  {percent(p[i].item())}", i) for i in e.prediction.best]
    return [*named, *((short(e.tokenizer, i), i) for i in others if i not in e.prediction.best)]
