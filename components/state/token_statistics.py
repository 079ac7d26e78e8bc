"""A cache of the statistics for each token in a document."""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

from gpt import Edits, Generation, Step
from gpt.analysis.predictions import TokenStatistics
from gpt.documents.document import Token

Nodes = dict[int, tuple[Token, TokenStatistics]]


class TokenStatisticsCache:
    """Per-node statistics for the trees of documents.

    The text before a node is the same on every path, so the statistics stay valid while the document's edits do not
    change. The token object distinguishes a removed node from a new one with the same number.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Generation, tuple[Edits | None, Nodes]] = WeakKeyDictionary()

    def of(self, document: Generation) -> list[TokenStatistics | None]:
        """Return the statistics for each token in the current text; None for the first token and for unread ones."""
        edits, nodes = self._known.get(document, (None, {}))
        if edits is not document.edits:
            nodes = {}
        self._known[document] = document.edits, nodes
        path, tokens = document.path, document.tree.tokens
        known = [nodes.get(node, (None, None)) for node in path]
        found = [
            measured if token is tokens[node] else None for node, (token, measured) in zip(path, known, strict=True)
        ]
        start = next((i for i in range(1, len(path)) if found[i] is None), len(path))
        if start < len(path):
            found[start:] = [None] * (len(path) - start)
            for i, measured in enumerate(document.statistics(start).tokens, start):
                nodes[path[i]], found[i] = (tokens[path[i]], measured), measured
        return found

    def add(self, document: Generation, step: Step) -> None:
        """Add the statistics for a newly generated token without measuring it again."""
        if document in self._known:
            surprisal = -math.log2(step.probability) if step.probability else math.inf
            node = document.path[-1]
            measured = TokenStatistics(step.probability, step.rank, step.entropy, surprisal)
            self._known[document][1][node] = document.tree.tokens[node], measured
