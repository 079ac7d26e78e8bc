"""Measure the cost of running a model in a local cluster's replicas instead of in this process.

    python -m benchmarks.cluster [--visitors 1 8 32] [--replicas 0 1 2] [--rounds 3] [--tokens 100] [--model NAME]

Each visitor is a thread that steps through a document, as the page does. With 0 replicas, the model runs in this
process. Each round measures every number of replicas in turn. Prints, as medians over the rounds, the total tokens per
second (also relative to this process) and the slowest time to first token. The benchmark stops if a text differs from
the output of `generate` with the same seed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PROMPT = "Once upon a time there was a"


def visit(loaded: Any, seed: int, tokens: int, expected: list[int]) -> tuple[float, float]:
    """Generate one visitor's text. Return the time to the first and to the last token, in seconds."""
    from gpt import Generation, SamplingParams
    from gpt.documents.generation import stream

    began, times = time.perf_counter(), []
    document = Generation(loaded, PROMPT)
    for _, step in stream(document, SamplingParams(temperature=1.0, seed=seed), tokens):
        if step is not None:
            times.append(time.perf_counter() - began)
    if document.ids[document.n_prompt :] != expected:
        sys.exit(f"seed {seed} generated a different text")
    return times[0], times[-1]


def measure(loaded: Any, visitors: int, tokens: int, expected: list[list[int]]) -> tuple[float, float]:
    """Return the total tokens per second and the slowest time to the first token."""
    with ThreadPoolExecutor(visitors) as pool:
        visits = list(pool.map(lambda seed: visit(loaded, seed, tokens, expected[seed]), range(visitors)))
    return sum(map(len, expected[:visitors])) / max(last for _, last in visits), max(first for first, _ in visits)


@contextmanager
def model_of(name: str, replicas: int) -> Any:
    """Yield the model, loaded in this process or in a local cluster with this many replicas."""
    from gpt import load_model
    from gpt.inference.cluster import LocalCluster
    from gpt.models.registry import Registry

    if replicas == 0:
        yield load_model(name, device="cpu")
        return
    cluster = LocalCluster(max_replicas=replicas, min_replicas=replicas)
    cluster.wait(300)
    registry = Registry(cluster=cluster)
    registry.add(name)
    try:
        yield registry.get(name)
    finally:
        cluster.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--replicas", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--model", default="stories")
    args = parser.parse_args()
    from gpt import SamplingParams, generate

    expected: list[list[int]] = []
    found: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for _ in range(args.rounds):
        for replicas in args.replicas:
            with model_of(args.model, replicas) as loaded:
                if not expected:
                    for seed in range(max(args.visitors)):
                        params = SamplingParams(temperature=1.0, seed=seed)
                        expected.append([step.token_id for step in generate(loaded, PROMPT, params, args.tokens)])
                measure(loaded, max(args.visitors), args.tokens, expected)  # makes sure that every replica has started
                for visitors in args.visitors:
                    found.setdefault((visitors, replicas), []).append(measure(loaded, visitors, args.tokens, expected))
    print("visitors  replicas  tokens/s  vs this process  slowest first token")
    for (visitors, replicas), results in sorted(found.items()):
        rate, first = (statistics.median(values) for values in zip(*results, strict=True))
        own = statistics.median(rate for rate, _ in found[visitors, args.replicas[0]])
        print(f"{visitors:8}  {replicas:8}  {rate:8.0f}  {rate / own:15.2f}  {1000 * first:8.0f} ms")


if __name__ == "__main__":
    main()
