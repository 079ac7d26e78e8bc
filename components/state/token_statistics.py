"""A cache of the statistics for each token in a document."""

from __future__ import annotations

import math

from gpt import Edits, Generation, Step
from gpt.analysis.predictions import TokenStatistics
from gpt.documents.token_tree import Token


class TokenStatisticsCache:
    """Per-node statistics for a document's tree.

    The text before a node is the same on every path, so the statistics stay valid while the document's edits do not
    change. The token object distinguishes a removed node from a new one with the same number.
    """

    def __init__(self) -> None:
        self._document: Generation | None = None
        self._edits: Edits | None = None
        self._tokens: dict[int, tuple[Token, TokenStatistics]] = {}

    def of(self, document: Generation) -> list[TokenStatistics | None]:
        """Return the statistics for each token in the current text; None for the first token and for unread ones."""
        if document is not self._document or document.edits is not self._edits:
            self._document, self._edits, self._tokens = document, document.edits, {}
        path, tokens = document.path, document.tree.tokens
        known = [self._tokens.get(node, (None, None)) for node in path]
        found = [
            measured if token is tokens[node] else None for node, (token, measured) in zip(path, known, strict=True)
        ]
        start = next((i for i in range(1, len(path)) if found[i] is None), len(path))
        if start < len(path):
            found[start:] = [None] * (len(path) - start)
            for i, measured in enumerate(document.statistics(start).tokens, start):
                self._tokens[path[i]], found[i] = (tokens[path[i]], measured), measured
        return found

    def add(self, document: Generation, step: Step) -> None:
        """Add the statistics for a newly generated token without measuring it again."""
        if document is self._document:
            surprisal = -math.log2(step.probability) if step.probability else math.inf
            node = document.path[-1]
            measured = TokenStatistics(step.probability, step.rank, step.entropy, surprisal)
            self._tokens[node] = document.tree.tokens[node], measured
