"""Compare this library with TransformerLens and nnsight: times the code of each task in docs/peers.md.

    pip install transformer-lens==4.3.0 nnsight==0.8.1
    python -m benchmarks.peers [--rounds 7]

Uses the bundled model in float32 on one thread. The libraries take turns in each round. Prints the median of this
library's processor time, and how it relates to that of the others: under 1, this library is faster.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.decode import cpu_name
from gpt import LoadedModel, Trace

PAGE = Path(__file__).parent.parent / "docs" / "peers.md"
SET_UP, STORIES = "Set up", "Read layer 4 of 200 stories"


def tasks() -> dict[str, list[str]]:
    """Return the code of each task on the page, by title: in this library, in TransformerLens, and in nnsight."""
    section = PAGE.read_text(encoding="utf-8").partition("## The same tasks\n")[2].partition("\n## ")[0]
    _, *parts = re.split(r"^### (.*)\n", section, flags=re.MULTILINE)
    codes = (re.findall(r"```python\n(.*?)```", body, flags=re.DOTALL) for body in parts[1::2])
    return dict(zip(parts[::2], codes, strict=True))


def runner(code: str, names: dict[str, Any]) -> Callable[[], Any]:
    """Return a function that runs code with these names and returns what it has `found`."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8", delete=False) as file:
        file.write(code)  # nnsight reads the code of a `with` block from its file
    compiled = compile(code, file.name, "exec")

    def run() -> Any:
        exec(compiled, names)
        return names.get("found")

    return run


def seconds(run: Callable[[], Any]) -> float:
    """Return the processor time of one run."""
    start = time.process_time()
    run()
    return time.process_time() - start


def one_by_one(loaded: LoadedModel, stories: list[list[int]]) -> list[Trace]:
    """Read each story on its own, with all activations."""
    return [loaded.trace(story) for story in stories]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    torch.set_num_threads(1)
    names: dict[str, Any] = {}
    examples = tasks()
    for code in examples.pop(SET_UP):
        runner(code, names)()
    print(f"{cpu_name()}, one thread, medians of {args.rounds} rounds")
    print("| Task | This library | Relative to TransformerLens | to nnsight |\n|---|---|---|---|")
    for title, codes in examples.items():
        runs = [runner(code, names) for code in codes]
        if title == STORIES:
            runs.append(lambda: one_by_one(names["loaded"], names["stories"]))
        _, *rounds = [[seconds(run) for run in runs] for _ in range(args.rounds + 1)]  # the first warms up
        ours, *others = (statistics.median(times) for times in zip(*rounds, strict=True))
        lens, nnsight, *alone = (f"{ours / other:.2f}" for other in others)
        print(f"| {title} | {1000 * ours:.0f} ms | {lens} | {nnsight} |", flush=True)
        for ratio in alone:
            print(f"{title}: {ratio} of the time that full traces, one by one, take")


if __name__ == "__main__":
    main()
