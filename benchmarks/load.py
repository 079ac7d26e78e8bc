"""Load test: 1, 8, 32, 64 concurrent visitors stream from the running app through gradio_client.

    python -m benchmarks.load [--visitors 1 8 32 64] [--rounds 3] [--tokens 100] [--model NAME] [--precision fp32]

The app runs in one process, the visitors in several others, because one could not read as fast as the app writes.
All start at the same time, each with another seed. Printed for each number of visitors, as medians over the rounds:
tokens per second in total and as a multiple of one visitor's, how many came with one update, the slowest visitor
against the median one, when the first token came (median and 95th percentile), streams that were lost, and the app's
memory after the first round and after the last. A stream that ends with another text than `generate` alone writes from
the same seed counts as lost.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier

from gradio_client import Client

from benchmarks.trials.app_process import running_app
from gpt import SamplingParams, generate, load_model

PROCESSES = 4
PROMPT = "Once upon a time there was a"


@dataclass(frozen=True)
class Expected:
    """The text of one seed."""

    text: str
    tokens: int


@dataclass(frozen=True)
class Visit:
    """first, last: seconds from the start to the first and the last update with text; updates: how many came."""

    first: float
    last: float
    updates: int
    tokens: int


def expect(model: str, precision: str, tokens: int, visitors: int) -> list[Expected]:
    """The text that each visitor must receive."""
    loaded, made = load_model(model, device="cpu", precision=precision), []
    for seed in range(visitors):
        steps = list(generate(loaded, PROMPT, SamplingParams(temperature=1.0, seed=seed), tokens))
        made.append(Expected("".join(step.text for step in steps), len(steps)))
    return made


def visit(client: Client, tokens: int, seed: int, expected: Expected, start: Barrier) -> Visit | None:
    """One visitor's stream; None if it was lost."""
    start.wait()
    began = time.perf_counter()
    times, text = [], ""
    try:
        job = client.submit(PROMPT, tokens, 1.0, 0, 1.0, 0.0, 1.0, seed, api_name="/generate")
        for text in job:
            if text:
                times.append(time.perf_counter() - began)
        job.result(timeout=60)
    except Exception as problem:
        print(f"lost: {problem}", file=sys.stderr)
        return None
    if text != expected.text:
        print(f"lost: seed {seed} wrote {text!r}, and alone {expected.text!r}", file=sys.stderr)
        return None
    return Visit(times[0], times[-1], len(times), expected.tokens)


class Visitors:
    """Visitors in several processes; each keeps its connection to the app between visits."""

    def __init__(self, url: str, count: int, tokens: int, expected: list[Expected]) -> None:
        self.tokens, self.expected = tokens, expected
        self.processes = [ProcessPoolExecutor(1) for _ in range(min(PROCESSES, count))]
        for first, process in enumerate(self.processes):
            process.submit(connect, url, len(range(first, count, len(self.processes)))).result()

    def visit(self, count: int) -> list[Visit | None]:
        """Concurrent visits of the first `count` visitors."""
        parts = []
        for first, process in enumerate(self.processes[:count]):
            seeds = list(range(first, count, len(self.processes)))
            parts.append(process.submit(part, self.tokens, seeds, [self.expected[seed] for seed in seeds]))
        return [one for visits in parts for one in visits.result()]

    def close(self) -> None:
        for process in self.processes:
            process.shutdown()


_clients: list[Client] = []  # of this process


def connect(url: str, count: int) -> None:
    """Open the page for `count` visitors of this process; without TLS verification, which takes time."""
    options = {"verbose": False, "ssl_verify": False, "httpx_kwargs": {"timeout": 60}}
    _clients.extend(Client(url, **options) for _ in range(count))


def part(tokens: int, seeds: list[int], expected: list[Expected]) -> list[Visit | None]:
    """Concurrent visits of the visitors of this process."""
    start = Barrier(len(seeds))
    with ThreadPoolExecutor(len(seeds)) as pool:
        clients = _clients[: len(seeds)]
        return list(pool.map(visit, clients, [tokens] * len(seeds), seeds, expected, [start] * len(seeds)))


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
        everybody = Visitors(app.url, len(expected), args.tokens, expected)
        everybody.visit(min(2, len(expected)))
        print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
        head = "visitors  tokens/s together  an update  slowest/median  first token (median, 95 %)"
        print(f"{head}  lost  memory, first to last round")
        alone = None
        for visitors in args.visitors:
            rounds, memory = [], []
            for _ in range(args.rounds):
                rounds.append(everybody.visit(visitors))
                memory.append(app.resident / 2**20)
            lost = sum(one is None for visits in rounds for one in visits)
            kept = [[one for one in visits if one is not None] for visits in rounds]
            total = statistics.median(sum(v.tokens for v in visits) / max(v.last for v in visits) for visits in kept)
            alone = alone or total
            rates = [[v.tokens / v.last for v in visits] for visits in kept]
            each = statistics.median(v.tokens / v.updates for visits in kept for v in visits)
            slowest = statistics.median(min(of) / statistics.median(of) for of in rates)
            first = sorted(v.first for visits in kept for v in visits)
            print(
                f"{visitors:8}  {total:9.0f} ({total / alone:4.1f}x)  {each:9.1f}  {slowest:14.2f}  "
                f"{statistics.median(first):12.2f} s {first[int(0.95 * (len(first) - 1))]:8.2f} s  {lost:4}  "
                f"{memory[0]:.0f} to {memory[-1]:.0f} MiB",
                flush=True,
            )
        everybody.close()


if __name__ == "__main__":
    main()
