"""Load test: concurrent visitors stream texts from the running app through its API.

    python -m benchmarks.load [--visitors 1 8 32 64] [--rounds 3] [--tokens 100] [--model NAME] [--precision fp32]

The app runs in a separate process. All visitors start at the same time, each with a different seed. For each number of
visitors, prints these medians over the rounds: total tokens per second, also relative to a single visitor; tokens per
update; speed of the slowest visitor relative to the median; time to first token (median and 95th percentile); lost
streams; texts that differ from the output of `generate` with the same seed; and the app's memory after the first and
last round. About one text in 300 differs, because rounding swaps two tokens with nearly the same probability.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature

import httpx
from httpx import AsyncClient

from benchmarks.trials.app_process import SECONDS, running_app
from components.api.text import TextEndpoints
from gpt import SamplingParams, generate, load_model

PROMPT = "Once upon a time there was a"


@dataclass(frozen=True)
class Expected:
    """The text that a visitor must receive."""

    text: str
    tokens: int


@dataclass(frozen=True)
class Visit:
    """The stream that a visitor received.

    first, last: Seconds until the first and last update that contained text.
    updates: Number of updates.
    is_expected: Whether the text is the expected one.
    """

    first: float
    last: float
    updates: int
    tokens: int
    is_expected: bool


def expect(model: str, precision: str, tokens: int, visitors: int) -> list[Expected]:
    """Return the text that each visitor must receive."""
    loaded, made = load_model(model, device="cpu", precision=precision), []
    for seed in range(visitors):
        steps = list(generate(loaded, PROMPT, SamplingParams(temperature=1.0, seed=seed), tokens))
        made.append(Expected("".join(step.text for step in steps), len(steps)))
    return made


def arguments(prompt: str, tokens: int, seed: int) -> list[object]:
    """Return arguments for /generate: temperature 1 and no filters."""
    given = {"prompt": prompt, "max_new_tokens": tokens, "temperature": 1.0, "seed": seed}
    parameters = list(signature(TextEndpoints.generate).parameters.values())[1:]  # without self
    return [given.get(each.name, each.default) for each in parameters]


async def visit(client: AsyncClient, url: str, tokens: int, seed: int, expected: Expected) -> Visit | None:
    """Read one visitor's stream. Return None if it was lost."""
    began, times, text, event = time.perf_counter(), [], "", ""
    url = f"{url}gradio_api/call/generate"
    try:
        body = {"data": arguments(PROMPT, tokens, seed), "session_hash": f"visitor{seed}"}
        event_id = (await client.post(url, json=body)).json()["event_id"]
        async with client.stream("GET", f"{url}/{event_id}") as answer:
            async for line in answer.aiter_lines():
                kind, _, value = line.partition(": ")
                if kind == "event":
                    event = value
                elif kind == "data" and (values := json.loads(value)) and values[0]:
                    text = values[0]
                    times.append(time.perf_counter() - began)
    except httpx.HTTPError as problem:
        event = repr(problem)
    if event != "complete" or not times:
        print(f"seed {seed} was lost: it ended with {event} after {text!r}", file=sys.stderr)
        return None
    if text != expected.text:
        print(f"seed {seed} generated {text!r}, but alone {expected.text!r}", file=sys.stderr)
    return Visit(times[0], times[-1], len(times), expected.tokens, text == expected.text)


def visits(url: str, tokens: int, expected: Sequence[Expected]) -> list[Visit | None]:
    """Run one visit per expected text, all concurrently."""

    async def gather() -> list[Visit | None]:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        async with AsyncClient(timeout=SECONDS, limits=limits) as client:
            return await asyncio.gather(*(visit(client, url, tokens, *each) for each in enumerate(expected)))

    return asyncio.run(gather())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visitors", type=int, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--model", default="stories")
    parser.add_argument("--precision", default="fp32")
    args = parser.parse_args()
    expected = expect(args.model, args.precision, args.tokens, max(args.visitors))
    with running_app("--model", args.model, "--precision", args.precision) as app:
        visits(app.url, args.tokens, expected[:2])
        print(f"system load before: {os.getloadavg()[0]:.1f}")
        head = "visitors  total tokens/s    per update  slowest/median  first token (median, 95%)"
        print(f"{head}  lost  different  memory, first to last round")
        alone = None
        for visitors in args.visitors:
            rounds, memory = [], []
            for _ in range(args.rounds):
                rounds.append(visits(app.url, args.tokens, expected[:visitors]))
                memory.append(app.resident / 2**20)
            lost = sum(one is None for of in rounds for one in of)
            kept = [[one for one in of if one is not None] for of in rounds]
            other = sum(not one.is_expected for of in kept for one in of)
            total = statistics.median(sum(v.tokens for v in of) / max(v.last for v in of) for of in kept)
            alone = alone or total
            rates = [[v.tokens / v.last for v in of] for of in kept]
            each = statistics.median(v.tokens / v.updates for of in kept for v in of)
            slowest = statistics.median(min(of) / statistics.median(of) for of in rates)
            first = sorted(v.first for of in kept for v in of)
            print(
                f"{visitors:8}  {total:9.0f} ({total / alone:4.1f}x)  {each:9.1f}  {slowest:14.2f}  "
                f"{statistics.median(first):12.2f} s {first[int(0.95 * (len(first) - 1))]:8.2f} s  "
                f"{lost:4}  {other:5}  "
                f"{memory[0]:.0f} to {memory[-1]:.0f} MiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
