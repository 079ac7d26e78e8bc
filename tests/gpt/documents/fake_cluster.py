"""A cluster without Ray: replicas in this process that can die, behind a boundary of JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

from gpt.documents.generation import of_request, replies
from gpt.inference.cluster import ConnectionLost, Replies
from gpt.models.loading import LoadedModel


def across(value: Any) -> Any:
    """Return the value as received by the other process."""
    return json.loads(json.dumps(value))


class FakeCluster:
    """A cluster whose replicas die on schedule.

    Attributes:
        lives: Number of replies that each successive replica sends before it dies.
        is_there: Whether the cluster answers.
        requests: Requests sent so far.
        interval: Passed to `replies`.
    """

    def __init__(self, model: LoadedModel, lives: list[int] | None = None, interval: float = 0.0) -> None:
        self.model, self.interval, self.is_there = model, interval, True
        self.lives = chain(lives or [], repeat(10**6))
        self.requests: list[dict[str, Any]] = []
        self.n_open = 0
        self.cluster = SimpleNamespace(max_replicas=1)

    def stream(self, request: dict[str, Any]) -> Replies:
        if not self.is_there:
            raise ConnectionLost
        request = across(request)
        self.requests.append(request)
        made = replies(of_request(self.model, request), request, lambda: self.interval)
        self.n_open += 1
        try:
            for _ in range(next(self.lives)):
                if not self.is_there:
                    break
                yield across(next(made, None))
            raise ConnectionLost(answered=True)
        finally:
            self.n_open -= 1


def deployed(model: LoadedModel, **options: Any) -> tuple[LoadedModel, FakeCluster]:
    """Return the model as a web process sees it, run by a fake cluster."""
    cluster = FakeCluster(model, **options)
    return replace(model, deployed=cluster), cluster
