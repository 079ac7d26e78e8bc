"""One local Ray cluster for all tests of this folder; run them with `python -m pytest -m cluster -n0`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from gpt.inference.cluster import LocalCluster
from gpt.models.loading import LoadedModel
from gpt.models.registry import Registry

START_SECONDS = 300  # a busy machine takes long to start nine processes


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, which need Ray."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("cluster")
            if find_spec("ray") is None:
                item.add_marker(pytest.mark.skip(reason="needs Ray: pip install -r requirements-cluster.txt"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """Start a cluster on this machine and wait until it is ready."""
    cluster = LocalCluster(max_replicas=1)
    assert cluster.wait(START_SECONDS)
    yield cluster
    cluster.close()


@pytest.fixture(scope="session")
def loaded(cluster: LocalCluster) -> LoadedModel:
    """The bundled model, as a web process sees it."""
    return Registry(cluster=cluster).get()
