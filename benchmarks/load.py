"""Load test: 1, 8, 32, 64 concurrent visitors stream from the running app through its API.

    python -m benchmarks.load [--visitors 1 8 32 64] [--rounds 3] [--tokens 100] [--model NAME] [--precision fp32]

The app runs in a process of its own. All visitors start at the same time, each with another seed. Printed for each
number of visitors, as medians over the rounds: tokens per second in total and as a multiple of one visitor's, how many
came with one update, the slowest visitor against the median one, when the first token came (median and 95th
percentile), streams that were lost, texts that are not those which `generate` alone writes from the same seed, and the
app's memory after the first round and after the last. About one text in 300 is another: rounding swaps two tokens of
nearly the same probability, of which one is drawn.
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

import httpx
from httpx import AsyncClient

from benchmarks.trials.app_process import SECONDS, running_app
from gpt import SamplingParams, generate, load_model

PROMPT = "Once upon a time there was a"


@dataclass(frozen=True)
class Expected:
    """The text of one seed."""

    text: str
    tokens: int


@dataclass(frozen=True)
class Visit:
    """first, last: seconds from the start to the first and the last update with text; updates: how many came.

    is_expected: whether the text is the one that was expected.
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
    """Of /generate: temperature 1, no filter, and what it draws by the seed."""
    return [prompt, tokens, 1.0, 0, 1.0, 0.0, 1.0, seed, "", "stop", None, None, False]


async def visit(client: AsyncClient, url: str, tokens: int, seed: int, expected: Expected) -> Visit | None:
    """One visitor's stream; None if it was lost."""
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
        print(f"lost: seed {seed} ended with {event} after {text!r}", file=sys.stderr)
        return None
    if text != expected.text:
        print(f"seed {seed} wrote {text!r}, and alone {expected.text!r}", file=sys.stderr)
    return Visit(times[0], times[-1], len(times), expected.tokens, text == expected.text)


def visits(url: str, tokens: int, expected: Sequence[Expected]) -> list[Visit | None]:
    """Concurrent visits, one of each seed from 0 on."""

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
        print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
        head = "visitors  tokens/s together  an update  slowest/median  first token (median, 95 %)"
        print(f"{head}  lost  other  memory, first to last round")
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
