"""A class opens the page at once: 1, 8, 32, 64 visitors stream from the running app through gradio_client.

    python benchmarks/load.py [--visitors 1 8 32 64] [--rounds 3] [--tokens 100] [--model NAME] [--precision fp32]

The app runs in a process of its own; all visitors start together. Printed for each number of visitors, as medians over
the rounds: tokens a second of all together and as a multiple of one visitor's, the slowest visitor against the median
one, when the first token came (median and 95th percentile), streams that were lost, the app's memory after the round.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier

ROOT = Path(__file__).parent.parent
PROMPT = "Once upon a time there was a"


@dataclass(frozen=True)
class Visit:
    """first, last: seconds from the start to the first and the last update with text; updates: how many came."""

    first: float
    last: float
    updates: int


def visit(url: str, tokens: int, seed: int, start: Barrier) -> Visit | None:
    """One visitor's stream; None if it was lost."""
    from gradio_client import Client

    client = Client(url, verbose=False)
    start.wait()
    began = time.perf_counter()
    times = []
    try:
        job = client.submit(PROMPT, tokens, 1.0, 0, 1.0, 0.0, 1.0, seed, api_name="/generate")
        for text in job:
            if text:
                times.append(time.perf_counter() - began)
        job.result(timeout=60)
    except Exception as problem:
        print(f"lost: {problem}", file=sys.stderr)
        return None
    return Visit(times[0], times[-1], len(times)) if times else None


def crowd(url: str, visitors: int, tokens: int) -> list[Visit | None]:
    start = Barrier(visitors)
    with ThreadPoolExecutor(visitors) as pool:
        return list(pool.map(lambda seed: visit(url, tokens, seed, start), range(visitors)))


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visitors", type=int, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--model", default="stories")
    parser.add_argument("--precision", default="fp32")
    given = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--port", str(port), "--model", given.model, "--precision", given.precision]
    app = subprocess.Popen([sys.executable, "app.py", *options], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        while "ready" not in (line := app.stdout.readline()):
            if not line:
                raise SystemExit("the app did not start")
        url = f"http://127.0.0.1:{port}/"
        crowd(url, 2, 8)
        print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
        print("visitors  tokens/s together  slowest/median  first token (median, 95 %)  lost  memory")
        alone = None
        for visitors in given.visitors:
            rounds = [crowd(url, visitors, given.tokens) for _ in range(given.rounds)]
            lost = sum(one is None for visits in rounds for one in visits)
            kept = [[one for one in visits if one is not None] for visits in rounds]
            total = statistics.median(sum(v.updates for v in visits) / max(v.last for v in visits) for visits in kept)
            alone = alone or total
            rates = [[v.updates / v.last for v in visits] for visits in kept]
            slowest = statistics.median(min(of) / statistics.median(of) for of in rates)
            first = sorted(v.first for visits in kept for v in visits)
            print(
                f"{visitors:8}  {total:8.0f} ({total / alone:4.1f}x)  {slowest:14.2f}  "
                f"{statistics.median(first):8.2f} s {first[int(0.95 * (len(first) - 1))]:8.2f} s  {lost:10}  "
                f"{resident(app.pid) / 2**20:5.0f} MiB",
                flush=True,
            )
    finally:
        app.terminate()
        app.wait()


if __name__ == "__main__":
    main()
