"""An immutable copy of a session, from which views are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from torch import Tensor

from components.errors import NothingToShow
from components.i18n import Language
from components.state.settings import Settings
from components.state.text import Selection, Text, TokenStatisticsCache
from components.state.typed_text import TypedText
from gpt import Edits, FinishReason, LoadedModel, Stages, distribution

S = TypeVar("S")


@cache
def _default(cls: type) -> object:
    """Return a tab's initial state, always the same object, so that it counts as unchanged."""
    return cls()


@dataclass(frozen=True)
class Message:
    """A sentence on the page: a catalogue key and its values."""

    key: str
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Throughput:
    """Number of tokens, model time in seconds excluding waiting, and time to first token."""

    seed: int | None
    count: int = 0
    seconds: float = 0.0
    first_seconds: float = 0.0

    @property
    def tokens_per_second(self) -> float | None:
        return self.count / self.seconds if self.seconds else None


LastAction = Message  # the last edit since the text was generated


@dataclass(frozen=True)
class Snapshot:
    """An immutable copy of a session, from which views are drawn.

    text: the text as the model reads it, without hidden words. written: the text as written. hidden: the hidden
    positions in it. The two texts are the same object if no word is hidden.
    """

    id: str
    language: Language
    tab: str
    film: str | None
    link_opened: bool
    navigated: float
    model: str
    own_models: tuple[str, ...]
    text: Text | None
    written: Text | None
    hidden: frozenset[int]
    prompt: str
    typed: TypedText | None
    answered: float
    chat: bool
    settings: Settings
    selection: Selection
    generating: bool
    can_undo: bool
    can_redo: bool
    throughput: Throughput | None
    finish_reason: FinishReason | None
    last_action: LastAction | None
    progress: Message | None
    notice: Message | Exception | None
    query: str
    numbers: bool
    special: bool
    edits: Edits
    edits_on: tuple[int, ...]
    loaded: LoadedModel | None = field(compare=False)
    token_statistics: TokenStatisticsCache = field(compare=False)
    states: dict[Any, object] = field(compare=False)
    handled: dict[tuple[str, str], int] = field(default_factory=dict, compare=False)
    _cache: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def state(self, cls: type[S]) -> S:
        """Return the current state of a tab or panel, given its dataclass."""
        found = self.states.get(cls)
        return _default(cls) if found is None else found  # type: ignore[arg-type, return-value]

    def __getitem__(self, key: Any) -> Any:
        """Return the current state of a tab, or the latest value of a `Computed`, None before the first."""
        return self.state(key) if isinstance(key, type) else getattr(self.states.get(key), "value", None)

    def ready(self, computed: Any) -> Any:
        """Return the latest value of a `Computed`, or None."""
        return computed.latest(self)

    def text_read(self) -> Text:
        """Return the text that the model has read, as `text` does. Raises NothingToShow if there is none."""
        if self.text is None or self.text.n_read == 0:
            raise NothingToShow
        return self.text

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot itself (see `components.state.reads.Reads`)."""
        return self

    def watch(self, function: Callable[[Snapshot], S]) -> S:
        """Return function(self) (see `components.state.reads.Reads`)."""
        return function(self)

    def cached(self, make: Callable[[Snapshot], S], key: object = None) -> S:
        """Return make(self), computed once per snapshot. key: identifies the result; defaults to `make`."""
        key = make if key is None else ("key", key)
        if key not in self._cache:
            self._cache[key] = make(self)
        return self._cache[key]

    def stages(self, logits: Tensor, ids: Sequence[int]) -> Stages:
        """Return the distribution of the token after `ids` under the sampling settings.

        Every probability of a next token on the page comes from here, or its label says "at temperature 1". logits: of
        the model, with or without edits, (vocab_size,).
        """
        return distribution(logits, self.settings.sampling(), previous_ids=ids)

    @property
    def unwritten(self) -> str | None:
        """Return the text in the box if it did not become the document, or else None."""
        typed = self.typed and self.typed.at(self.written)
        return None if typed is None or typed.is_current else typed.text

    @property
    def next_prompt(self) -> str:
        """Return the text in the box if it did not become the document, or else the document's prompt."""
        return self.prompt if self.unwritten is None else self.unwritten

    @property
    def position(self) -> int | None:
        """Return the selected position, or None if there is no text."""
        return None if self.text is None else self.text.at(self.selection)
