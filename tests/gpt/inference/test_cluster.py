"""Messages to the driver of a cluster, tested without a cluster."""

from __future__ import annotations

import threading
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import pytest

from gpt.inference.cluster import Cluster, ClusterOptions, ConnectionLost, ModelSpec, Stream

SPEC = ModelSpec("stories", "stories", "fp32")


class WhileWriting:
    """A connection that calls `then` in the middle of the first message, like a garbage collector might."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.then = connection, lambda: None

    def send_bytes(self, data: bytes) -> None:
        then, self.then = self.then, lambda: None
        then()
        self.connection.send_bytes(data)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A reachable cluster whose driver is a pipe: `cluster.theirs` is its other end."""
    cluster = Cluster(ClusterOptions("local"))
    ours, cluster.theirs = Pipe()  # type: ignore[attr-defined]
    cluster._connection = WhileWriting(ours)  # type: ignore[assignment]
    monkeypatch.setattr(Cluster, "is_there", property(lambda self: True))
    return cluster


def received(cluster: Any) -> list[tuple[Any, ...]]:
    """Return the messages that have arrived."""
    messages = []
    while cluster.theirs.poll():
        messages.append(cluster.theirs.recv())
    return messages


def test_a_stream_that_the_garbage_collector_closes_while_a_message_is_written_is_cancelled_after_it(
    cluster: Any,
) -> None:
    old = cluster.stream(SPEC, "first")
    cluster._connection.then = old.close
    new: list[Stream] = []
    writing = threading.Thread(target=lambda: new.append(cluster.stream(SPEC, "second")), daemon=True)
    writing.start()
    writing.join(10)
    assert not writing.is_alive()
    assert received(cluster) == [("stream", 1, SPEC, "first"), ("stream", 2, SPEC, "second"), ("cancel", 1)]


def test_all_messages_of_several_threads_arrive_whole(cluster: Any) -> None:
    threads = [threading.Thread(target=cluster.stream, args=(SPEC, str(n) * 10_000)) for n in range(20)]
    for thread in threads:
        thread.start()
    messages = [cluster.theirs.recv() for _ in threads]
    for thread in threads:
        thread.join()
    assert sorted(message[3] for message in messages) == sorted(str(n) * 10_000 for n in range(20))


def test_a_request_to_a_driver_that_has_ended_is_lost_and_forgotten(cluster: Any) -> None:
    cluster.theirs.close()
    with pytest.raises(ConnectionLost):
        cluster.stream(SPEC, "text")
    assert not cluster._streams
