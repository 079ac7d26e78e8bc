"""Simulate many concurrent visitors, many texts in sequence, and dropped connections."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx

from benchmarks.load import arguments, expect, visits
from benchmarks.trials.app_process import SECONDS, AppProcess, Result, running_app, seconds_until

PROMPT = "Once upon a time"
GROUP = 50  # number of connections cut at once
PARALLEL = 16
RETURNED_SECONDS = 31.0  # by then, the app has returned freed memory to the system
CLIENT = httpx.Client(timeout=SECONDS, limits=httpx.Limits(max_connections=None, max_keepalive_connections=0))


def visitors(scale: float = 1.0) -> Result:
    """Let 200 visitors generate 100 tokens each at once, and check that nearly all texts match ones generated alone."""
    n = round(200 * scale)
    with running_app("--no-mcp") as app:
        arrived = [one for one in visits(app.url, 100, expect("stories", "fp32", 100, n)) if one]
    lost, others = n - len(arrived), sum(not one.is_expected for one in arrived)
    failures = ["lost"] * lost
    if others > 1 + 0.01 * n:
        failures.append(f"{others} texts differ from those generated alone")
    first = sorted(one.first for one in arrived)
    at = f"first token: median {first[len(first) // 2]:.1f} s, 95% {first[int(0.95 * (len(first) - 1))]:.1f} s"
    return Result("visitors at once, 100 tokens each", n, tuple(failures), f"{lost} lost, {others} texts differ; {at}")


def generations(scale: float = 1.0) -> Result:
    """Generate 10,000 texts of 8 tokens, and check that memory doesn't grow after the first tenth."""
    n, failures = round(10_000 * scale), list[str]()
    memory: list[int] = []  # after each tenth

    def generate(seed: int) -> None:
        with stream(app, seed, 8) as lines:
            if "event: complete" not in lines:
                failures.append(f"text {seed} did not end")

    with running_app("--no-mcp") as app, ThreadPoolExecutor(PARALLEL) as pool:
        for tenth in range(10):
            list(pool.map(generate, range(tenth * n // 10, (tenth + 1) * n // 10)))
            if scale >= 1:
                time.sleep(RETURNED_SECONDS)
            memory.append(app.resident)
    lost, growth = len(failures), max(memory) / memory[0] - 1
    if scale >= 1 and growth > 0.05:  # the first thousand texts fill caches
        failures.append(f"memory grew by {growth:.1%}")
    tenths = ", ".join(f"{each / 2**20:.0f}" for each in memory)
    return Result("texts one after another", n, tuple(failures), f"{lost} lost; MiB after each tenth: {tenths}")


def cuts(scale: float = 1.0) -> Result:
    """Cut 1,000 connections in the middle of a 240-token text, and check that every slot becomes free again."""
    n, failures, slowest = round(1000 * scale), [], 0.0

    def cut(seed: int) -> None:
        with stream(app, seed, 240) as lines:
            if not any(line.startswith("data: ") and line != 'data: [""]' for line in lines):
                failures.append(f"text {seed} ended before it was cut")

    with running_app("--no-mcp") as app, ThreadPoolExecutor(GROUP) as pool:
        for first in range(0, n, GROUP):
            list(pool.map(cut, range(first, min(n, first + GROUP))))
            tokens = app.metric("glassbox_tokens_total")
            slowest = max(slowest, seconds_until(lambda: app.n_texts() == 0))
            wasted = app.metric("glassbox_tokens_total") - tokens
            if wasted > GROUP * 120:
                failures.append(f"{wasted:.0f} tokens were generated after the cut")
    return Result("connections cut in the middle", n, tuple(failures), f"every slot was free within {slowest:.2f} s")


@contextmanager
def stream(app: AppProcess, seed: int, tokens: int) -> Iterator[Iterator[str]]:
    """Yield the lines of a text's stream; leaving the `with` block cuts the connection."""
    url, visitor = f"{app.url}gradio_api/call/generate", f"visitor{threading.get_ident()}"
    body = json.dumps({"data": arguments(PROMPT, tokens, seed), "session_hash": visitor})
    event = CLIENT.post(url, content=body, headers={"Content-Type": "application/json"}).json()["event_id"]
    with CLIENT.stream("GET", f"{url}/{event}") as answer:
        yield answer.iter_lines()
