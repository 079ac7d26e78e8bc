"""A cluster without Ray: replicas in this process that can die, behind a boundary that pickles."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

from gpt import Generation
from gpt.documents.backends import StreamReply, StreamRequest
from gpt.documents.generation import replies
from gpt.errors import GPTError
from gpt.inference.cluster import ConnectionLost
from gpt.models.loading import LoadedModel


def across(value: Any) -> Any:
    """Return the value as received by the other process. No tensor may cross."""
    data = pickle.dumps(value)
    assert b"torch" not in data, "a tensor would cross the border"
    return pickle.loads(data)


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
        self.cluster = SimpleNamespace(options=SimpleNamespace(max_replicas=1))

    def stream(self, request: StreamRequest) -> FakeStream:
        if not self.is_there:
            raise ConnectionLost
        self.requests.append(across(request))
        return FakeStream(self, self.requests[-1], next(self.lives))


class FakeStream:
    """A request to one replica."""

    def __init__(self, cluster: FakeCluster, request: StreamRequest, life: int) -> None:
        self.cluster, self.life = cluster, life
        self.replies = replies(Generation.of_request(cluster.model, request), request, lambda: cluster.interval)
        cluster.n_open += 1

    def __iter__(self) -> FakeStream:
        return self

    def __next__(self) -> StreamReply | None:
        if not self.cluster.is_there or self.life == 0:
            raise ConnectionLost
        self.life -= 1
        try:
            return across(next(self.replies))
        except GPTError as error:
            raise across(error) from None

    def close(self) -> None:
        self.cluster.n_open -= 1


def deployed(model: LoadedModel, **options: Any) -> tuple[LoadedModel, FakeCluster]:
    """Return the model as a web process sees it, run by a fake cluster."""
    cluster = FakeCluster(model, **options)
    return replace(model, deployed=cluster), cluster
