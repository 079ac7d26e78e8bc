"""A cluster without Ray: replicas in this process that can die, behind a boundary of JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

from gpt import Generation
from gpt.documents.generation import replies
from gpt.documents.remote import StreamRequest
from gpt.inference.cluster import ConnectionLost
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
        self.requests: list[StreamRequest] = []
        self.n_open = 0
        self.cluster = SimpleNamespace(max_replicas=1)

    def stream(self, request: dict[str, Any]) -> FakeStream:
        if not self.is_there:
            raise ConnectionLost
        self.requests.append(StreamRequest.from_json(across(request)))
        return FakeStream(self, self.requests[-1], next(self.lives))


class FakeStream:
    """A request to one replica."""

    def __init__(self, cluster: FakeCluster, request: StreamRequest, life: int) -> None:
        self.cluster, self.life = cluster, life
        self.replies = replies(Generation.of_request(cluster.model, request), request, lambda: cluster.interval)
        cluster.n_open += 1

    def __iter__(self) -> FakeStream:
        return self

    def __next__(self) -> dict[str, Any] | None:
        if not self.cluster.is_there or self.life == 0:
            raise ConnectionLost(answered=True)
        self.life -= 1
        return across(next(self.replies).to_json())

    def close(self) -> None:
        self.cluster.n_open -= 1


def deployed(model: LoadedModel, **options: Any) -> tuple[LoadedModel, FakeCluster]:
    """Return the model as a web process sees it, run by a fake cluster."""
    cluster = FakeCluster(model, **options)
    return replace(model, deployed=cluster), cluster
