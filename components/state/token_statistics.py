"""A cache of the statistics of each token of a document."""

from __future__ import annotations

import math

from gpt import Generation, Step
from gpt.analysis.text_statistics import TokenStatistics


class TokenStatisticsCache:
    """Statistics by node of a document's tree. The text before a node is the same on every path, so they never
    change."""

    def __init__(self) -> None:
        self._document: Generation | None = None
        self._tokens: dict[int, TokenStatistics] = {}

    def of(self, document: Generation) -> list[TokenStatistics | None]:
        """Statistics of each token of the current text; None for the first token and for unread ones."""
        if document is not self._document:
            self._document, self._tokens = document, {}
        path = document.path
        start = next((i for i in range(1, len(path)) if path[i] not in self._tokens), len(path))
        if start < len(path):
            tokens = document.statistics(start).tokens
            self._tokens |= zip(path[start : start + len(tokens)], tokens, strict=True)
        return [self._tokens.get(node) for node in path]

    def add(self, document: Generation, step: Step) -> None:
        """Add the statistics of a newly generated token without measuring it again."""
        if document is self._document:
            surprisal = -math.log2(step.probability) if step.probability else math.inf
            self._tokens[document.path[-1]] = TokenStatistics(step.probability, step.rank, step.entropy, surprisal)
