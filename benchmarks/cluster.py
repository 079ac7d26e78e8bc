"""What the border to a cluster costs: 1, 8, 32 visitors in this process, in 1 and in 2 replicas of a local cluster.

    python benchmarks/cluster.py [--visitors 1 8 32] [--replicas 0 1 2] [--rounds 3] [--tokens 100] [--model NAME]

Every visitor is a thread that takes the steps of a document, as the page does; 0 replicas is the engine of this
process. Each round measures every number of replicas, one after the other. Printed are the tokens per second of all
visitors together and the time of the slowest first token, as medians over the rounds, and the rate as a multiple of
that of this process. A text that differs from what a visitor alone writes from the same seed ends the benchmark.
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
    """Seconds to the first and to the last token of one visitor."""
    from gpt import Generation, SamplingParams
    from gpt.documents.backends import polled

    began, times = time.perf_counter(), []
    document = Generation(loaded, PROMPT)
    for step in polled(document.steps(SamplingParams(temperature=1.0, seed=seed), tokens)):
        if step is not None:
            times.append(time.perf_counter() - began)
    if document.ids[document.n_prompt :] != expected:
        sys.exit(f"seed {seed} wrote another text")
    return times[0], times[-1]


def measure(loaded: Any, visitors: int, tokens: int, expected: list[list[int]]) -> tuple[float, float]:
    """(tokens per second in total, seconds to the slowest first token)."""
    with ThreadPoolExecutor(visitors) as pool:
        visits = list(pool.map(lambda seed: visit(loaded, seed, tokens, expected[seed]), range(visitors)))
    return sum(map(len, expected[:visitors])) / max(last for _, last in visits), max(first for first, _ in visits)


@contextmanager
def model_of(name: str, replicas: int) -> Any:
    """Return the model, of this process or of a local cluster with this many replicas, after a first text of each."""
    from gpt import load_model
    from gpt.inference.cluster import Cluster, ClusterOptions
    from gpt.models.registry import Registry

    if replicas == 0:
        yield load_model(name, device="cpu")
        return
    cluster = Cluster(ClusterOptions("local", max_replicas=replicas, min_replicas=replicas))
    cluster.start()
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
    sys.path.insert(0, str(ROOT))
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
                measure(loaded, max(args.visitors), args.tokens, expected)  # every replica has started
                for visitors in args.visitors:
                    found.setdefault((visitors, replicas), []).append(measure(loaded, visitors, args.tokens, expected))
    print("visitors  replicas  tokens/s  of this process  first token, slowest")
    for (visitors, replicas), results in sorted(found.items()):
        rate, first = (statistics.median(values) for values in zip(*results, strict=True))
        own = statistics.median(rate for rate, _ in found[visitors, args.replicas[0]])
        print(f"{visitors:8}  {replicas:8}  {rate:8.0f}  {rate / own:15.2f}  {1000 * first:8.0f} ms")


if __name__ == "__main__":
    main()
