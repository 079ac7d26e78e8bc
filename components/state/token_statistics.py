"""What the model gave each token of a document before it was there, each measured once."""

from __future__ import annotations

import math

from gpt import Generation, Step
from gpt.documents.text_statistics import TokenStatistics


class Known:
    """A token of the tree has the same text before it on every path, so what is known of it never changes."""

    def __init__(self) -> None:
        self._document: Generation | None = None
        self._tokens: dict[int, TokenStatistics] = {}

    def of(self, document: Generation) -> list[TokenStatistics | None]:
        """For each token of the current text; None for the first, and for what the model has not read up to."""
        if document is not self._document:
            self._document, self._tokens = document, {}
        path = document.path
        start = next((i for i in range(1, len(path)) if path[i] not in self._tokens), len(path))
        if start < len(path):
            tokens = document.statistics(start).tokens
            self._tokens |= zip(path[start : start + len(tokens)], tokens, strict=True)
        return [self._tokens.get(node) for node in path]

    def add(self, document: Generation, step: Step) -> TokenStatistics:
        """The token that was just written, without measuring it again."""
        found = statistics_of(step)
        if document is self._document:
            self._tokens[document.path[-1]] = found
        return found


def statistics_of(step: Step) -> TokenStatistics:
    """What a step says of its token."""
    surprisal = -math.log2(step.probability) if step.probability else math.inf
    return TokenStatistics(step.probability, step.rank, step.entropy, surprisal)
