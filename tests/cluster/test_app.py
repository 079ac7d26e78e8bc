"""`python app.py --cluster local`: the page and its documents in this process, the model in replicas."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from gradio_client import Client

from gpt import SamplingParams, generate
from tests.cluster.conftest import START_SECONDS
from tests.cluster.processes import descendants

ROOT = Path(__file__).parent.parent.parent
PROMPT = "The sun was warm and"


@pytest.fixture(scope="module")
def app() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the app; return its process and address."""
    command = [sys.executable, "app.py", "--cluster", "local", "--replicas", "1", "--no-mcp"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ | {"PORT": ""}) as app:
        assert app.stdout is not None
        line = next(line for line in app.stdout if line.startswith("Glassbox GPT is ready: "))
        yield app, line.split()[-1]
        app.kill()


def health(address: str) -> dict[str, object]:
    """Return the response of /healthz once the cluster is ready, or the last one after START_SECONDS."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        with urlopen(f"{address}healthz") as answer:
            health = json.load(answer)
        if health["cluster"] or time.monotonic() > deadline:
            return health
        time.sleep(1)


def test_the_page_generates_in_the_cluster_and_its_end_is_that_of_the_cluster(
    app: tuple[subprocess.Popen[str], str],
) -> None:
    process, address = app
    assert health(address) == {"healthy": True, "engines": {"stories": True, "poems": True}, "cluster": True}
    text = Client(address, verbose=False).predict(PROMPT, 30, temperature=0.8, seed=5, api_name="/generate")
    expected = generate("stories", PROMPT, SamplingParams(temperature=0.8, seed=5), 30)
    assert text == "".join(step.text for step in expected)
    with urlopen(f"{address}metrics") as answer:
        metrics = answer.read().decode()
    assert "glassbox_cluster 1.0" in metrics
    below = descendants(process.pid)
    assert len(below) > 5
    process.send_signal(signal.SIGTERM)
    assert process.wait(START_SECONDS) == 0
