"""Ray Serve application: serve run gpt.serving.app:app [min_replicas=1] [max_replicas=4] [num_gpus=0]

Each replica keeps several models in memory, and Ray sends a request to one that has the model. The web process is a
client (`gpt.inference.cluster`), started with `python app.py --cluster http://HOST:8000`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import closing
from typing import Any
from weakref import WeakSet

from ray import serve
from ray.serve import Application
from starlette.concurrency import iterate_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from gpt.inference.engine import MAX_TEXTS
from gpt.serving.replica import Replica, error_line

MAX_MODELS = 4  # models per replica; the one that was not used for longest makes room for another
TARGET_TEXTS = 16  # texts per replica; with more, Ray starts another replica
HEALTH_CHECK_SECONDS = 10.0  # interval between health checks of a replica
HEALTH_TIMEOUT_SECONDS = 30.0
LINES = "application/x-ndjson"  # media type of lines of JSON


class Models:
    """A replica of the deployment."""

    def __init__(self) -> None:
        self._in_memory: WeakSet[Replica] = WeakSet()

    @serve.multiplexed(max_num_models_per_replica=MAX_MODELS)  # type: ignore[untyped-decorator]
    async def model(self, model_id: str) -> Replica:
        replica = await asyncio.to_thread(Replica, json.loads(model_id))
        self._in_memory.add(replica)
        return replica

    async def __call__(self, request: Request) -> StreamingResponse:
        """Continue a text; the request and the lines of the answer are those of `gpt.documents.generation.replies`."""
        try:
            replica, asked = await self.model(serve.get_multiplexed_model_id()), await request.json()
        except Exception as error:
            return StreamingResponse(iter([error_line(error)]), media_type=LINES)
        return StreamingResponse(until_disconnected(replica.lines(asked)), media_type=LINES)

    async def check_health(self) -> None:
        """Raise an error if one of the models cannot read a token, which makes Ray replace this replica."""
        for replica in list(self._in_memory):
            await asyncio.to_thread(replica.check_health)


async def until_disconnected(lines: Generator[str, None, None]) -> AsyncIterator[str]:
    """Yield the lines of an answer. Stop its text if the client disconnects."""
    with closing(lines):
        async for line in iterate_in_threadpool(lines):
            yield line


def app(options: Mapping[str, Any]) -> Application:
    """Build the application. min_replicas, max_replicas: number of replicas. num_gpus: share of a GPU for each."""
    deployment = serve.deployment(
        Models,
        ray_actor_options={"num_cpus": 1, "num_gpus": float(options.get("num_gpus", 0))},
        max_ongoing_requests=MAX_TEXTS,
        autoscaling_config={
            "min_replicas": int(options.get("min_replicas", 1)),
            "max_replicas": int(options.get("max_replicas", 4)),
            "target_ongoing_requests": TARGET_TEXTS,
        },
        health_check_period_s=HEALTH_CHECK_SECONDS,
        health_check_timeout_s=HEALTH_TIMEOUT_SECONDS,
    )
    return deployment.bind()
