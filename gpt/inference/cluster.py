"""Client of the Ray Serve application `gpt.serving.app`, whose replicas run the models. Does not need Ray itself.

Each text is one POST request, answered by lines of JSON. If a line is {"error": ...}, it is the last one. A stream that
ends without {"end": true} has been lost, and can be requested again from the tokens received so far.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from gpt.errors import GPTError, require

CHECK_SECONDS = 2.0  # interval between checks whether the cluster answers
ANSWER_SECONDS = 2.0  # time limit for its answer
POLL_SECONDS = 0.5  # longest wait for a reply
CLOSE_SECONDS = 20.0  # time limit for a local cluster to end
MODEL_HEADER = "serve_multiplexed_model_id"  # tells Ray which replicas have the model in memory
PR_SET_PDEATHSIG = 1  # option of prctl(2)
ModelSpec = Mapping[str, Any]  # arguments to `gpt.models.sources.load_model`, sent as JSON with every request
Replies = Generator[dict[str, Any] | None, None, None]  # to one request; None when none has arrived for POLL_SECONDS


class ConnectionLost(Exception):
    """Raised when a stream breaks off or nothing answers. The request can be repeated.

    answered: whether the cluster had accepted the request.
    """

    def __init__(self, *, answered: bool = False) -> None:
        self.answered = answered


class Cluster:
    """Connection to a cluster.

    url: HTTP address of Ray Serve, such as http://head:8000. max_replicas: number of replicas that the cluster may
    start; it limits how many texts are generated at the same time.
    """

    def __init__(self, url: str, max_replicas: int = 4) -> None:
        self.url, self.max_replicas = url, max_replicas
        self.loop = asyncio.new_event_loop()
        self.client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=ANSWER_SECONDS), limits=httpx.Limits(max_connections=None)
        )
        self._lock = threading.Lock()  # guards the attributes below
        self._answers, self._checked = False, -CHECK_SECONDS
        threading.Thread(target=self.loop.run_forever, name="cluster", daemon=True).start()

    @property
    def is_there(self) -> bool:
        """Whether the cluster answers, which is checked every CHECK_SECONDS."""
        with self._lock:
            if time.monotonic() - self._checked >= CHECK_SECONDS:
                self._answers = False
                with suppress(httpx.HTTPError):
                    answer = httpx.get(httpx.URL(self.url).join("/-/healthz"), timeout=ANSWER_SECONDS)
                    self._answers = answer.status_code == httpx.codes.OK
                self._checked = time.monotonic()
            return self._answers

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for the cluster and return whether it answers."""
        deadline = time.monotonic() + seconds
        while not self.is_there and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.is_there

    def stream(self, spec: ModelSpec, request: dict[str, Any]) -> Replies:
        """Send a request to a replica that has the model. Closing the generator cancels it.

        Raises ConnectionLost if the cluster does not answer or the connection breaks, and any GPTError of the replica.
        """
        if not self.is_there:
            raise ConnectionLost
        received: SimpleQueue[dict[str, Any] | Exception | None] = SimpleQueue()
        task = asyncio.run_coroutine_threadsafe(self._receive(spec, request, received), self.loop)
        try:
            while True:
                try:
                    reply = received.get(timeout=POLL_SECONDS)
                except Empty:
                    if not self.is_there:  # a broken network does not close connections
                        raise ConnectionLost(answered=True) from None
                    yield None
                    continue
                if reply is None:
                    return
                if isinstance(reply, Exception):
                    raise reply
                yield reply
        finally:
            task.cancel()

    async def _receive(
        self, spec: ModelSpec, request: dict[str, Any], received: SimpleQueue[dict[str, Any] | Exception | None]
    ) -> None:
        """Send the request and put its replies into the queue, followed by None or an error."""
        end: Exception | None = ConnectionLost()
        try:
            headers = {MODEL_HEADER: json.dumps(spec)}
            async with self.client.stream("POST", self.url, json=request, headers=headers) as answer:
                # Ray answers 404 while the application is being started, and after it has been ended.
                end = ConnectionLost(answered=answer.status_code != httpx.codes.NOT_FOUND)
                async for line in answer.raise_for_status().aiter_lines():
                    reply = json.loads(line)
                    if "error" in reply:
                        key, sentence, values = reply["error"]
                        end = GPTError(key, sentence, **values)
                    elif "end" in reply:
                        end = None
                    else:
                        received.put(reply)
        except (httpx.HTTPError, json.JSONDecodeError):
            pass
        finally:
            received.put(end)


@dataclass(frozen=True)
class DeployedModel:
    """A model that runs on a cluster."""

    cluster: Cluster
    spec: ModelSpec

    @property
    def is_there(self) -> bool:
        return self.cluster.is_there

    def stream(self, request: dict[str, Any]) -> Replies:
        return self.cluster.stream(self.spec, request)


class LocalCluster(Cluster):
    """A cluster on this computer, started by `serve run` and ended with this process. Raises ValueError without Ray."""

    def __init__(self, max_replicas: int = 4, *, min_replicas: int = 1) -> None:
        require(find_spec("ray") is not None, "cluster.no_ray")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        super().__init__(f"http://127.0.0.1:{port}", max_replicas)
        arguments = {"min_replicas": min_replicas, "max_replicas": max_replicas}
        application = {"name": "glassbox", "route_prefix": "/", "import_path": "gpt.serving.app:app", "args": arguments}
        http = {"host": "127.0.0.1", "port": port}
        self._folder = TemporaryDirectory(prefix="glassbox-")
        config = Path(self._folder.name) / "serve.yaml"  # JSON is YAML
        config.write_text(json.dumps({"http_options": http, "applications": [application]}))
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "RAY_USAGE_STATS_ENABLED": "0"}
        environment |= {"RAY_raylet_start_wait_time_s": "300"}  # the default is too short for a busy computer
        self.process = subprocess.Popen(  # the parent of all processes of the cluster
            [sys.executable, "-m", "ray.serve.scripts", "run", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            start_new_session=True,  # so that Ctrl-C reaches only this process, which then closes the cluster
            preexec_fn=_end_with_parent,
            env=os.environ | environment,
        )
        atexit.register(self.close)

    def close(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._folder.cleanup()


def _end_with_parent() -> None:
    """Let SIGINT end this process. On Linux, let the end of its parent kill it, and Ray end with it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # while Ray starts, it ignores other signals
