"""The driver: connects to a cluster, deploys models, and forwards requests and replies.

`gpt.inference.cluster` starts `python -m gpt.serving.driver DESCRIPTOR ADDRESS MIN_REPLICAS MAX_REPLICAS` with the
file descriptor of a connection. The driver exits when this connection closes.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import ray
from ray import serve
from ray.exceptions import RayError, RayTaskError
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle
from ray.serve.schema import ApplicationStatus

import gpt
from gpt.errors import GPTError
from gpt.inference.cluster import BEAT_SECONDS, RETRY_SECONDS, ModelSpec
from gpt.inference.engine import MAX_TEXTS
from gpt.serving.replica import Replica

TARGET_TEXTS = 16  # texts per replica; with more, Ray starts another replica
IDLE_SECONDS = 3600.0  # idle time after which the last replica of a model stops
HEALTH_CHECK_SECONDS = 10.0  # interval between health checks of a replica
HEALTH_TIMEOUT_SECONDS = 30.0
GPU_SHARE = 0.5  # GPUs per replica, if the cluster has GPUs; two replicas share one
POLL_SECONDS = 1.0  # longest wait for messages from a `Relay`

Message = tuple[Any, ...]
Range = tuple[int, int]  # minimum and maximum number of replicas per model


class Driver:
    """Sends requests to replicas. Runs in the event loop in which it is created.

    send: called with ("beat",), ("reply", number, reply), ("end", number, None), ("lost", number, None) and ("failed",
    number, error).
    """

    def __init__(self, send: Callable[[Message], None], replicas: Range) -> None:
        self._send, self._replicas = send, replicas
        self._handles: dict[ModelSpec, asyncio.Future[DeploymentHandle]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._background = {asyncio.ensure_future(self._beat())}

    def receive(self, message: Message) -> None:
        """Handle a message from `gpt.inference.cluster.Cluster`."""
        kind, *values = message
        if kind == "deploy":
            task = asyncio.ensure_future(self._deploy_early(*values))
            self._background.add(task)
            task.add_done_callback(self._background.discard)
        elif kind == "stream":
            number, spec, request = values
            self._tasks[number] = task = asyncio.ensure_future(self._stream(number, spec, request))
            task.add_done_callback(lambda _: self._tasks.pop(number, None))
        elif kind == "cancel" and values[0] in self._tasks:
            self._tasks[values[0]].cancel()

    async def _beat(self) -> None:
        """Send heartbeats as long as Serve responds."""
        while True:
            with suppress(RayError, RayServeException):
                await asyncio.to_thread(serve.status)
                self._send(("beat",))
            await asyncio.sleep(BEAT_SECONDS)

    async def _deploy_early(self, spec: ModelSpec) -> None:
        try:
            await self._handle(spec)
        except Exception as problem:  # requests will report this error again
            print(f"{spec.name} could not be deployed: {problem}", file=sys.stderr)

    async def _handle(self, spec: ModelSpec) -> DeploymentHandle:
        if spec not in self._handles:
            self._handles[spec] = asyncio.ensure_future(asyncio.to_thread(deploy, spec, self._replicas))
        try:
            return await asyncio.shield(self._handles[spec])
        except asyncio.CancelledError:
            raise
        except Exception:
            self._handles.pop(spec, None)  # the next request tries again
            raise

    async def _stream(self, number: int, spec: ModelSpec, request: object) -> None:
        response = None
        try:
            handle = await self._handle(spec)
            response = handle.stream.remote(request)
            async for reply in response:
                if isinstance(reply, GPTError):
                    raise reply
                self._send(("reply", number, reply))
            self._send(("end", number, None))
        except asyncio.CancelledError:
            if response is not None:
                response.cancel()
            raise
        except GPTError as error:
            self._send(("failed", number, error))
        except Exception as error:
            if is_loss(error):
                self._handles.pop(spec, None)  # so that the next request redeploys the model if necessary
                self._send(("lost", number, None))
            else:
                reason = str(error).strip().splitlines()[-1:] or [type(error).__name__]
                self._send(
                    (
                        "failed",
                        number,
                        GPTError(
                            "cluster.failed",
                            "the cluster cannot run {model}: {reason}",
                            model=spec.name,
                            reason=reason[0],
                        ),
                    )
                )


def is_loss(error: Exception) -> bool:
    """Return whether the error means that a replica failed or is unreachable, so that another replica may succeed."""
    return isinstance(error, RayError | RayServeException) and not isinstance(error, RayTaskError)


def deploy(spec: ModelSpec, replicas: Range) -> DeploymentHandle:
    """Return the handle of a model's deployment. Deploys the model first if its deployment is missing or has failed."""
    digest = hashlib.sha256(repr((spec, gpt_version())).encode()).hexdigest()[:8]
    name = f"glassbox-{re.sub('[^a-zA-Z0-9]+', '-', spec.name).strip('-')}-{digest}"
    application = serve.status().applications.get(name)
    if application is None or application.status == ApplicationStatus.DEPLOY_FAILED:
        has_gpu = ray.cluster_resources().get("GPU", 0) > 0
        deployment = serve.deployment(
            Replica,
            ray_actor_options={"num_cpus": 1, "num_gpus": GPU_SHARE if has_gpu else 0},
            max_ongoing_requests=MAX_TEXTS,
            autoscaling_config={
                "min_replicas": replicas[0],
                "initial_replicas": max(1, replicas[0]),
                "max_replicas": replicas[1],
                "target_ongoing_requests": TARGET_TEXTS,
                "downscale_to_zero_delay_s": IDLE_SECONDS,
            },
            health_check_period_s=HEALTH_CHECK_SECONDS,
            health_check_timeout_s=HEALTH_TIMEOUT_SECONDS,
        )
        serve.run(deployment.bind(spec), name=name, route_prefix=None)
    return serve.get_app_handle(name).options(stream=True)


def gpt_version() -> str:
    """Return a digest of this package's code, which distinguishes the deployments of different versions."""
    digest = hashlib.sha256()
    folder = Path(gpt.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def connect(address: str) -> None:
    """Connect to Ray and start Serve without an HTTP port. Raises ConnectionError if there is no cluster."""
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "warning"}
    if address == "local":
        options |= {"num_cpus": max(2, os.cpu_count() or 1), "include_dashboard": False}
    else:  # the nodes may lack this package
        options["runtime_env"] = {"py_modules": [str(Path(gpt.__file__).parent)]}
    ray.init(address=address, namespace="glassbox", **options)
    serve.start(proxy_location="Disabled")


class Relay:
    """A driver that runs inside the cluster, because Ray's client for "ray://" addresses does not support streams."""

    def __init__(self, replicas: Range) -> None:
        self._replicas = replicas
        self._driver: Driver | None = None
        self._outbox: list[Message] = []
        self._filled = asyncio.Event()

    async def receive(self, messages: list[Message]) -> None:
        """Pass messages to the driver."""
        if self._driver is None:
            self._driver = Driver(self._put, self._replicas)
        for message in messages:
            self._driver.receive(message)

    def _put(self, message: Message) -> None:
        self._outbox.append(message)
        self._filled.set()

    async def poll(self) -> list[Message]:
        """Return the driver's messages since the last call, waiting up to POLL_SECONDS for the first."""
        try:
            await asyncio.wait_for(self._filled.wait(), POLL_SECONDS)
        except asyncio.TimeoutError:
            return []
        self._filled.clear()
        messages, self._outbox = self._outbox, []
        return messages


def run_relay(inbox: SimpleQueue[Message], send: Callable[[Message], None], replicas: Range) -> None:
    """Start a `Relay` and exchange messages with it."""
    relay = ray.remote(num_cpus=0)(Relay).remote(replicas)

    def forward() -> None:
        while True:
            relay.receive.remote([inbox.get()])

    threading.Thread(target=forward, daemon=True).start()
    with suppress(ConnectionError):  # the connection was closed
        while True:
            for message in ray.get(relay.poll.remote()):
                send(message)


async def run_driver(inbox: SimpleQueue[Message], send: Callable[[Message], None], replicas: Range) -> None:
    """Run a driver in this process."""
    driver = Driver(send, replicas)
    while True:
        driver.receive(await asyncio.to_thread(inbox.get))


def read_messages(connection: Connection, inbox: SimpleQueue[Message]) -> None:
    """Put messages from a connection into the inbox, and end this process when the connection closes."""
    with suppress(EOFError, OSError):
        while (message := connection.recv())[0] != "close":
            inbox.put(message)
    ray.shutdown()  # also ends a local cluster
    os._exit(0)


def main() -> None:
    """Connect to the cluster, retrying until it is reachable, and run the driver."""
    connection, address, replicas = Connection(int(sys.argv[1])), sys.argv[2], (int(sys.argv[3]), int(sys.argv[4]))
    inbox: SimpleQueue[Message] = SimpleQueue()
    threading.Thread(target=read_messages, args=(connection, inbox), daemon=True).start()
    reported = ""
    while True:
        try:
            connect(address)
            break
        except Exception as problem:  # Ray raises many types, including plain Exception
            if str(problem) != reported:
                reported = str(problem)
                print(f"No cluster at {address}: {reported}", file=sys.stderr)
            ray.shutdown()
            time.sleep(RETRY_SECONDS)
    if address.startswith("ray://"):
        run_relay(inbox, connection.send, replicas)
    else:
        asyncio.run(run_driver(inbox, connection.send, replicas))


if __name__ == "__main__":
    main()
