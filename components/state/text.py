"""An immutable view of a session's document."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from components.state.selection import NEWEST, Selection
from gpt import Generation, GPTConfig, LoadedModel
from gpt.documents.branch_cache import common_prefix_length
from gpt.tokenizer import Vocabulary


@dataclass(frozen=True)
class Text:
    """A session's document at one moment. Texts are equal if they have the same tokens and the same n_read.

    Under `DocumentLock.reading` the document only grows, so values at positions below n_read do not change.
    kept: without hidden words (see `Snapshot.text`), each token's position in the text as written; otherwise None.
    """

    document: Generation = field(compare=False, repr=False)
    ids: tuple[int, ...] = field(compare=False, repr=False)
    n_read: int
    version: tuple[int, int]  # the document's key, and the last node of its current path
    kept: tuple[int, ...] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, document: Generation) -> Text:
        n_read = document.n_read  # read first, because the ids may grow meanwhile
        ids = tuple(document.ids)
        return cls(document, ids, min(n_read, len(ids)), (document.key, document.path[len(ids) - 1]))

    @property
    def loaded(self) -> LoadedModel:
        return self.document.loaded

    @property
    def tokenizer(self) -> Vocabulary:
        return self.document.loaded.tokenizer

    @property
    def config(self) -> GPTConfig:
        return self.document.loaded.model.config

    def without(self, hidden: Collection[int]) -> Text:
        """Let the model read the text without the tokens at these positions."""
        document = self.document.without(hidden)
        document.read()
        return replace(Text.of(document), kept=tuple(i for i in range(len(self.ids)) if i not in hidden))

    def at(self, selection: Selection) -> int:
        """Return the selected position, but at most the last one that the model has read."""
        return self._place(selection, self.n_read - 1)

    def framed(self, selection: Selection) -> int:
        """Return the position to mark; unlike `at`, it can be the last token of a full context, which is never read."""
        return self._place(selection, len(self.ids) - 1)

    def _place(self, selection: Selection, last: int) -> int:
        """Return where the selected token or, if it is hidden, the last visible one before it stands in this text."""
        place = last if selection.position == NEWEST else selection.position
        if selection.position != NEWEST and self.kept is not None:
            place = max(0, bisect_right(self.kept, place) - 1)
        return min(place, last)

    def as_written(self, position: int) -> int:
        """Return the position of one of this text's tokens in the text as written."""
        return position if self.kept is None else self.kept[position]


@dataclass(frozen=True)
class HiddenWords:
    """The words that a person has hidden from the model.

    ids: the text up to the last hidden word; positions: the hidden words' positions.
    """

    ids: tuple[int, ...] = ()
    positions: frozenset[int] = frozenset()

    def within(self, text: Text) -> frozenset[int]:
        """Return the hidden positions within the prefix that a text shares with the text whose words were hidden.

        Nothing is hidden if no token would be left.
        """
        n = common_prefix_length(self.ids, text.ids)
        hidden = frozenset(position for position in self.positions if position < n)
        return hidden if len(hidden) < len(text.ids) else frozenset()
