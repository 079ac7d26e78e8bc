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
    """Number of tokens, model time in seconds excluding waiting, and seconds to the first token."""

    seed: int | None
    count: int = 0
    seconds: float = 0.0
    first_seconds: float = 0.0

    @property
    def tokens_per_second(self) -> float | None:
        return self.count / self.seconds if self.seconds else None


@dataclass(eq=False)
class Shown:
    """What a session shows, and its snapshots copy. Each value is replaced as a whole, never changed.

    film: name of the film's open beat, or None if the film is closed. link_opened: whether the loaded page's link has
    been opened. navigated: time of the newest tab click, Back or Forward, in ms on the browser's clock. loaded: the
    model in use, which differs from `model` while the chosen one loads. own_models: those trained by the visitor.
    answered: time of the last key press before the current text in the box. last_action: the last edit since the text
    was generated. progress: a message about the task in progress. notice: a remark about the text, or an error.
    too_long: number of tokens in an overlong text in the box, else 0. attention_off: whether the prediction without
    attention is also shown. more_controls: whether the Write tab shows every control, not only those that a first visit
    needs. query: search text for the vocabulary. numbers: whether the page shows all digits, and seeds, ids and speeds.
    special: whether names of control tokens in typed text become control tokens.
    """

    id: str = ""
    language: Language = "en"
    tab: str = "playground"
    film: str | None = None
    link_opened: bool = False
    navigated: float = 0.0
    model: str = ""
    loaded: LoadedModel | None = None
    own_models: tuple[str, ...] = ()
    prompt: str = ""
    answered: float = 0.0
    settings: Settings = field(default_factory=Settings)
    selection: Selection = field(default_factory=Selection)
    throughput: Throughput | None = None
    finish_reason: FinishReason | None = None
    last_action: Message | None = None
    progress: Message | None = None
    notice: Message | Exception | None = None
    too_long: int = 0
    attention_off: bool = False
    more_controls: bool = False
    query: str = ""
    numbers: bool = False
    special: bool = False
    edits: Edits = field(default_factory=Edits)
    token_statistics: TokenStatisticsCache = field(default_factory=TokenStatisticsCache)


@dataclass(eq=False)
class Snapshot(Shown):
    """A copy of a session that nobody changes, from which views are drawn. Other fields are as in `Session`."""

    text: Text | None = None  # as the model reads it, without hidden words
    written: Text | None = None  # the text as written; the same object as `text` if no word is hidden
    hidden: frozenset[int] = frozenset()  # the hidden positions in `written`
    generating: bool = False
    is_chat: bool = False
    typed: TypedText | None = None
    unwritten: str | None = None
    next_prompt: str = ""
    can_undo: bool = False
    can_redo: bool = False
    edits_on: tuple[int, ...] = ()
    states: dict[Any, object] = field(default_factory=dict)
    handled: dict[tuple[str, str], int] = field(default_factory=dict)
    _cache: dict[Any, Any] = field(default_factory=dict)

    def state(self, cls: type[S]) -> S:
        found = self.states.get(cls)
        return _default(cls) if found is None else found  # type: ignore[arg-type, return-value]

    def __getitem__(self, key: Any) -> Any:
        """Return the current state of a tab, or the latest value of a `Computed`, None before the first."""
        return self.state(key) if isinstance(key, type) else getattr(self.states.get(key), "value", None)

    def ready(self, computed: Any) -> Any:
        return self[computed]

    def text_read(self) -> Text:
        """Return the text that the model has read, as `text` does. Raises NothingToShow if there is none."""
        if self.text is None or self.text.n_read == 0:
            raise NothingToShow
        return self.text

    # as in `components.state.reads.Reads`

    @property
    def snapshot(self) -> Snapshot:
        return self

    def watch(self, function: Callable[[Snapshot], S]) -> S:
        return function(self)

    def cached(self, make: Callable[[Snapshot], S], key: object = None) -> S:
        """Return make(self), computed once per snapshot. key: identifies the result; defaults to `make`."""
        key = make if key is None else ("key", key)
        if key not in self._cache:
            self._cache[key] = make(self)
        return self._cache[key]

    def stages(self, logits: Tensor, ids: Sequence[int]) -> Stages:
        """Return the distribution of the token after `ids` under the sampling settings. logits: (vocab_size,).

        Every probability of a next token on the page comes from here, or its label says "at temperature 1".
        """
        return distribution(logits, self.settings.sampling(), previous_ids=ids)

    @property
    def position(self) -> int | None:
        """Return the selected position, or None if there is no text."""
        return None if self.text is None else self.text.at(self.selection)
