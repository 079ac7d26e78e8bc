"""A session as it is at one moment: all that views are drawn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from components.i18n import Language
from components.state.selection import Selection
from components.state.settings import Settings
from components.state.text import Text
from components.state.throughput import Throughput
from components.state.token_statistics import TokenStatisticsCache
from gpt import Edits, FinishReason, LoadedModel

S = TypeVar("S")


@dataclass(frozen=True)
class Message:
    """A sentence of the page: a key of the catalogue and its values."""

    key: str
    values: dict[str, Any] = field(default_factory=dict)


LastAction = Message  # what a person did to the text since the last run


@dataclass(frozen=True)
class Snapshot:
    """A session at one moment: all that views are drawn from."""

    id: str
    language: Language
    tab: str
    model: str
    own_models: tuple[str, ...]
    text: Text | None
    prompt: str
    typed: str
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
    edits: Edits
    edits_on: tuple[int, ...]
    loaded: LoadedModel | None = field(compare=False)
    token_statistics: TokenStatisticsCache = field(compare=False)
    states: dict[type, object] = field(compare=False)
    _cache: dict[Callable[..., Any], Any] = field(default_factory=dict, compare=False, repr=False)

    def state(self, cls: type[S]) -> S:
        """The state of one tab or panel, by its dataclass."""
        found = self.states.get(cls)
        return cls() if found is None else found  # type: ignore[return-value]

    def cached(self, make: Callable[[Snapshot], S]) -> S:
        """make(self), computed once for all views that are drawn from this snapshot."""
        if make not in self._cache:
            self._cache[make] = make(self)
        return self._cache[make]  # type: ignore[no-any-return]

    @property
    def position(self) -> int | None:
        """The selected position; None where there is no text."""
        return None if self.text is None else self.text.at(self.selection)
