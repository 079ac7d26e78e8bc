"""An immutable view of a session's document."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Literal, get_args
from weakref import WeakKeyDictionary

from gpt import Edits, Generation, GPTConfig, LoadedModel, Step
from gpt.analysis.predictions import TokenStatistics
from gpt.documents.document import Token, common_prefix_length
from gpt.tokenizer import Vocabulary

Version = tuple[int, int]  # the document's key, and the last node of its current path
NEWEST = -1  # follows the last token as the text grows
Shading = Literal["probability", "rank", "entropy", "surprisal", "attention"]


def shading_named(name: object) -> Shading | None:
    return next((each for each in get_args(Shading) if each == name), None)


@dataclass(frozen=True)
class Selection:
    """The position (NEWEST for the last token), layer, head (None for the average) and the token strip's shading."""

    position: int = NEWEST
    layer: int = 0
    head: int | None = None
    shading: Shading = "probability"

    def clamped_to(self, config: GPTConfig, *, position: int) -> Selection:
        layer = min(self.layer, config.n_layer - 1)
        head = None if self.head is None else min(self.head, config.n_head - 1)
        return replace(self, position=position, layer=layer, head=head)


@dataclass(frozen=True)
class Text:
    """A session's document at one moment. Texts are equal if they have the same tokens and the same n_read.

    Under `DocumentLock.reading` the document only grows, so values at positions below n_read do not change.
    kept: without hidden words (see `Snapshot.text`), each token's position in the text as written; otherwise None.
    """

    document: Generation = field(compare=False, repr=False)
    ids: tuple[int, ...] = field(compare=False, repr=False)
    n_read: int
    version: Version
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
        """Return the position to mark, which can be the last token of a full context, which is never read."""
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
    ids: tuple[int, ...] = ()  # the text up to the last hidden word
    positions: frozenset[int] = frozenset()

    def within(self, text: Text) -> frozenset[int]:
        """Return the hidden positions in the beginning that a text shares, or none if no token would be left."""
        n = common_prefix_length(self.ids, text.ids)
        hidden = frozenset(position for position in self.positions if position < n)
        return hidden if len(hidden) < len(text.ids) else frozenset()


class TokenStatisticsCache:
    """Statistics of each document's tokens, kept as far as its text and its edits stay the same."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Generation, tuple[Edits | None, list[Token], list[TokenStatistics]]] = (
            WeakKeyDictionary()
        )

    def of(self, document: Generation) -> list[TokenStatistics | None]:
        """Return the statistics for each token in the current text; None for the first token and for unread ones."""
        tokens = [document.tree.tokens[node] for node in document.path]
        edits, before, known = self._known.get(document, (None, [], []))
        same = 0 if edits is not document.edits else common_prefix_length([*map(id, before)], [*map(id, tokens)])
        known = known[: max(0, same - 1)]
        if len(known) < len(tokens) - 1:
            known = [*known, *document.statistics(len(known) + 1).tokens]
        self._known[document] = document.edits, tokens, known
        return [None, *known, *[None] * (len(tokens) - 1 - len(known))]

    def add(self, document: Generation, step: Step) -> None:
        """Add the statistics for a newly generated token without measuring it again."""
        edits, before, known = self._known.get(document, (None, [], []))
        if before and len(known) == len(document.path) - 2:
            surprisal = -math.log2(step.probability) if step.probability else math.inf
            measured = TokenStatistics(step.probability, step.rank, step.entropy, surprisal)
            tokens = [*before, document.tree.tokens[document.path[-1]]]
            self._known[document] = edits, tokens, [*known, measured]
