"""Connection from this process to a cluster that runs the models (see `gpt.serving`).

Ray terminates a process that has been cut off from its cluster for a minute. Ray therefore runs in a separate process,
the driver, which is restarted until it finds the cluster. Meanwhile, this process keeps all its data.
"""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from gpt.errors import GPTError

BEAT_SECONDS = 2.0  # interval between the cluster's heartbeats
AWAY_SECONDS = 10.0  # the cluster counts as unreachable after this time without a heartbeat
START_SECONDS = 180.0  # time limit for the first heartbeat, after which the driver is restarted
RESTART_SECONDS = 60.0  # time limit for later heartbeats
RAY_TOKEN = Path.home() / ".ray" / "auth_token"
RETRY_SECONDS = 3.0  # delay before restarting the driver
POLL_SECONDS = 0.5  # longest wait for a reply


class ConnectionLost(Exception):
    """Raised when the replica has failed or the cluster is unreachable. The request can be retried."""


@dataclass(frozen=True)
class ModelSpec:
    """Arguments to `gpt.models.sources.load_model` for a replica.

    location: a name, a path or a repository. hints: (name, value) pairs for settings that the checkpoint does not
        contain.
    """

    name: str
    location: str
    precision: str
    hints: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class ClusterOptions:
    """Address and size of a cluster.

    address: "local" starts a cluster on this computer that ends with this process; "auto" joins the cluster running
    on this computer; "host:port" joins that node's cluster; "ray://host:port" connects from outside the cluster.
    min_replicas, max_replicas: limits per model. With a minimum of 0, the last replica stops after an hour without
    requests.
    """

    address: str
    max_replicas: int = 4
    min_replicas: int = 0


class Stream:
    """Iterator over the replies to one request, with None whenever none has arrived for POLL_SECONDS.

    Raises ConnectionLost if the connection breaks, and any exception raised by the replica.
    """

    def __init__(self, cluster: Cluster, number: int) -> None:
        self._cluster, self._number = cluster, number
        self.messages: SimpleQueue[tuple[str, Any]] = SimpleQueue()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Any:
        try:
            kind, value = self.messages.get(timeout=POLL_SECONDS)
        except Empty:
            return None
        if kind == "reply":
            return value
        self.messages.put((kind, value))  # repeat the last message in later calls
        if kind == "lost":
            raise ConnectionLost
        if kind == "failed":
            raise value
        raise StopIteration

    def close(self) -> None:
        """Cancel the request."""
        self._cluster.cancel(self._number)


class Cluster:
    """Connection to a cluster through a driver process, which runs from `start` until `close`."""

    def __init__(self, options: ClusterOptions) -> None:
        self.options = options
        self._streams: dict[int, Stream] = {}
        self._numbers = count(1)
        self._connection: Connection | None = None
        self._specs: list[ModelSpec] = []
        self._last_beat = -math.inf
        self._closed = threading.Event()
        self._lock = threading.Lock()  # guards the attributes above
        self._outbox: SimpleQueue[tuple[Connection, bytes]] = SimpleQueue()  # messages to send
        self._send_lock = threading.Lock()  # held while sending from the outbox; acquired without blocking

    def start(self) -> None:
        """Connect in a thread, and reconnect whenever the connection is lost. Raises ValueError if Ray is missing."""
        if find_spec("ray") is None:
            raise GPTError("cluster.no_ray", "a cluster needs Ray: pip install -r requirements-cluster.txt")
        threading.Thread(target=self._run, name="cluster", daemon=True).start()

    @property
    def is_there(self) -> bool:
        """Whether the cluster has sent a heartbeat within the last AWAY_SECONDS."""
        return self._connection is not None and time.monotonic() - self._last_beat < AWAY_SECONDS

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for the cluster and return whether it is reachable."""
        deadline = time.monotonic() + seconds
        while not self.is_there and time.monotonic() < deadline:
            self._closed.wait(0.1)
        return self.is_there

    def model(self, spec: ModelSpec) -> DeployedModel:
        """Return a model on the cluster. It is deployed as soon as the cluster is reachable."""
        with self._lock:
            if spec not in self._specs:
                self._specs.append(spec)
        with suppress(ConnectionLost):
            self._send(("deploy", spec))
        return DeployedModel(self, spec)

    def stream(self, spec: ModelSpec, request: object) -> Stream:
        """Send a request to a replica of a model. Raises ConnectionLost while the cluster is unreachable."""
        if not self.is_there:
            raise ConnectionLost
        with self._lock:
            number = next(self._numbers)
            stream = self._streams[number] = Stream(self, number)
        try:
            self._send(("stream", number, spec, request))
        except ConnectionLost:
            self._streams.pop(number, None)
            raise
        return stream

    def cancel(self, number: int) -> None:
        """Cancel a request unless it has ended."""
        if self._streams.pop(number, None) is not None:
            with suppress(ConnectionLost):
                self._send(("cancel", number))

    def close(self) -> None:
        """Stop the driver and, with it, a "local" cluster."""
        self._closed.set()
        connection = self._connection
        if connection is not None:
            with suppress(ConnectionLost):
                self._send(("close",))

    def _send(self, message: tuple[Any, ...]) -> None:
        """Send a message, or leave it to a thread that is already sending.

        Raises ConnectionLost if there is no connection. Waiting for the lock could deadlock: in the thread that holds
        it, the garbage collector may close a stream, which calls this method.
        """
        connection = self._connection
        if connection is None:
            raise ConnectionLost
        self._outbox.put((connection, pickle.dumps(message)))
        lost: list[Connection] = []
        while not self._outbox.empty() and self._send_lock.acquire(blocking=False):
            try:
                lost += self._write_outbox()
            finally:
                self._send_lock.release()
        if any(each is connection for each in lost):
            raise ConnectionLost

    def _write_outbox(self) -> list[Connection]:
        """Send all pending messages and return the connections that were lost."""
        lost = []
        with suppress(Empty):
            while True:
                connection, data = self._outbox.get_nowait()
                try:
                    connection.send_bytes(data)
                except (OSError, ValueError):
                    lost.append(connection)
        return lost

    def _run(self) -> None:
        while not self._closed.is_set():
            with self._driver() as connection:
                self._connection, self._last_beat = connection, -math.inf
                for spec in self._specs:
                    with suppress(ConnectionLost):
                        self._send(("deploy", spec))
                self._receive(connection)
                self._connection = None
            with self._lock:
                streams, self._streams = list(self._streams.values()), {}
            for stream in streams:
                stream.messages.put(("lost", None))
            self._closed.wait(RETRY_SECONDS)

    def _receive(self, connection: Connection) -> None:
        """Forward the driver's messages until it ends or stays silent for too long."""
        deadline = time.monotonic() + START_SECONDS
        with suppress(EOFError, OSError):
            while connection.poll(max(0.0, deadline - time.monotonic())):
                kind, *values = connection.recv()
                if kind == "beat":
                    self._last_beat = time.monotonic()
                    deadline = self._last_beat + RESTART_SECONDS
                else:
                    number, value = values
                    stream = self._streams.get(number) if kind == "reply" else self._streams.pop(number, None)
                    if stream is not None:
                        stream.messages.put((kind, value))

    @contextmanager
    def _driver(self) -> Iterator[Connection]:
        """Start a driver for the duration of the block and return the connection to it."""
        ours, theirs = Pipe()
        options = self.options
        command = [sys.executable, "-m", "gpt.serving.driver", str(theirs.fileno()), options.address]
        process = subprocess.Popen(
            [*command, str(options.min_replicas), str(options.max_replicas)],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # so that Ctrl-C reaches only this process, which then closes the connection
            env=driver_environment(),
        )
        theirs.close()
        try:
            yield ours
        finally:
            ours.close()
            try:
                process.wait(timeout=10)  # the driver exits when its connection closes
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def driver_environment() -> dict[str, str]:
    """Return the driver's environment: usage statistics off, and token authentication on if there is a token."""
    environment = {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    has_token = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys() or RAY_TOKEN.is_file()
    if has_token and "RAY_AUTH_MODE" not in os.environ:  # Ray does this itself except for "ray://"
        environment["RAY_AUTH_MODE"] = "token"
    return os.environ | environment


@dataclass(frozen=True)
class DeployedModel:
    """A model that runs on a cluster."""

    cluster: Cluster
    spec: ModelSpec

    @property
    def is_there(self) -> bool:
        """Whether the cluster is reachable."""
        return self.cluster.is_there

    def stream(self, request: object) -> Stream:
        """Send a request. Raises ConnectionLost while the cluster is unreachable."""
        return self.cluster.stream(self.spec, request)
