"""An immutable view of a session's document."""

from __future__ import annotations

from dataclasses import dataclass, field

from components.state.selection import NEWEST, Selection
from gpt import Generation, GPTConfig, LoadedModel
from gpt.tokenizer import Vocabulary


@dataclass(frozen=True)
class Text:
    """A session's document at one moment. Texts are equal if they have the same tokens and the same n_read.

    Under `DocumentLock.reading` the document only grows, so values at positions below n_read do not change.
    """

    document: Generation = field(compare=False, repr=False)
    ids: tuple[int, ...] = field(compare=False, repr=False)
    n_read: int
    version: tuple[int, int]  # the document's key, and the last node of its current path

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

    def at(self, selection: Selection) -> int:
        """Return the selected position, but at most the last one that the model has read."""
        last = self.n_read - 1
        return last if selection.position == NEWEST else min(selection.position, last)

    def framed(self, selection: Selection) -> int:
        """Return the position to mark; unlike `at`, it can be the last token of a full context, which is never read."""
        last = len(self.ids) - 1
        return last if selection.position == NEWEST else min(selection.position, last)


@dataclass(frozen=True, eq=False)
class AtPosition:
    """A result for one position in one version of a text."""

    version: tuple[int, int]
    position: int

    def belongs_to(self, text: Text, position: int) -> bool:
        return self.version == text.version and self.position == position
