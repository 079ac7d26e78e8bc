"""The driver's deployments, tested with Ray but without a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gpt.inference.cluster import ModelSpec

SPEC = ModelSpec("stories", "stories", "fp32")


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import the module with a Serve that records applications: `driver.serve.deployed` lists their names in order."""
    from ray.serve.schema import ApplicationStatus  # noqa: PLC0415 - Ray is optional

    from gpt.serving import driver  # noqa: PLC0415

    serve = SimpleNamespace(applications={}, deployed=[], next_status=ApplicationStatus.RUNNING)

    def run(spec: ModelSpec, name: str, route_prefix: str | None) -> None:
        serve.deployed.append(name)
        serve.applications[name] = SimpleNamespace(status=serve.next_status)
        if serve.next_status == ApplicationStatus.DEPLOY_FAILED:
            raise RuntimeError("no memory")

    serve.run = run
    serve.status = lambda: serve
    serve.deployment = lambda *_, **__: SimpleNamespace(bind=lambda spec: spec)
    serve.get_app_handle = lambda name: SimpleNamespace(options=lambda stream: name)
    monkeypatch.setattr(driver, "serve", serve)
    monkeypatch.setattr(driver.ray, "cluster_resources", lambda: {})
    return driver


def test_a_deployment_is_started_once_and_again_where_it_failed(driver: Any) -> None:
    from ray.serve.schema import ApplicationStatus  # noqa: PLC0415

    serve = driver.serve
    serve.next_status = ApplicationStatus.DEPLOY_FAILED
    with pytest.raises(RuntimeError, match="no memory"):
        driver.deploy(SPEC, (0, 1))
    serve.next_status = ApplicationStatus.RUNNING
    name = driver.deploy(SPEC, (0, 1))
    assert serve.deployed == [name, name]
    for status in (ApplicationStatus.RUNNING, ApplicationStatus.DEPLOYING, ApplicationStatus.UNHEALTHY):
        serve.applications[name].status = status
        assert driver.deploy(SPEC, (0, 1)) == name
    assert serve.deployed == [name, name]


def test_a_request_after_a_lost_one_deploys_a_model_whose_deployment_failed(
    driver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ray.serve.exceptions import RayServeException  # noqa: PLC0415
    from ray.serve.schema import ApplicationStatus  # noqa: PLC0415

    serve, sent = driver.serve, []

    def stream_of(name: str) -> Callable[..., Any]:
        async def replies(request: str) -> Any:
            if serve.applications[name].status == ApplicationStatus.DEPLOY_FAILED:
                raise RayServeException("the deployment failed")
            yield request

        return replies

    def get_app_handle(name: str) -> Any:
        handle = SimpleNamespace(stream=SimpleNamespace(remote=stream_of(name)))
        return SimpleNamespace(options=lambda stream: handle)

    monkeypatch.setattr(serve, "get_app_handle", get_app_handle)

    async def three_requests() -> None:
        connected = driver.Driver(sent.append, (0, 1))
        for number in range(3):
            connected.receive(("stream", number, SPEC, f"text {number}"))
            await asyncio.gather(*connected._tasks.values())
            if number == 0:
                serve.applications[serve.deployed[0]].status = ApplicationStatus.DEPLOY_FAILED

    asyncio.run(three_requests())
    assert [message for message in sent if message[0] != "beat"] == [
        ("reply", 0, "text 0"),
        ("end", 0, None),
        ("lost", 1, None),
        ("reply", 2, "text 2"),
        ("end", 2, None),
    ]
    assert len(serve.deployed) == 2
