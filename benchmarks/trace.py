"""What it costs to trace every head and every other activation, against the plain pass; and what it costs transformers.

    python benchmarks/trace.py [--rounds 5] [--tokens 256 1024] [--threads N]

The shape of GPT-2 small with random weights, float32, one text. The four passes take turns in one process; ratios of
the medians are printed, of wall-clock time and of processor time, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch

from gpt import GPTConfig, Trace
from gpt.model import GPT
from gpt.packed import pack


def passes(config: GPTConfig) -> dict[str, Callable[[torch.Tensor], object]]:
    """The four passes by name, each over ids (1, T)."""
    from transformers import GPT2Config, GPT2LMHeadModel

    ours = GPT(config).eval()
    pack(ours, "fp32")  # as a loaded model is
    shape = GPT2Config(
        vocab_size=config.vocab_size,
        n_positions=config.block_size,
        n_embd=config.n_embd,
        n_layer=config.n_layer,
        n_head=config.n_head,
        attn_implementation="eager",  # the only one of transformers that gives weights
    )
    theirs = GPT2LMHeadModel(shape).eval()
    shape.attn_implementation = "sdpa"
    fused = GPT2LMHeadModel(shape).eval()
    fused.load_state_dict(theirs.state_dict())
    return {
        "ours, plain": ours,
        "ours, traced": lambda idx: ours(idx, trace=Trace()),
        "transformers, plain": lambda idx: fused(idx, use_cache=False),
        "transformers, output_attentions": lambda idx: theirs(idx, use_cache=False, output_attentions=True),
    }


@torch.inference_mode()
def seconds(run: Callable[[torch.Tensor], object], idx: torch.Tensor) -> tuple[float, float]:
    """How long one pass takes: by the clock, and of the processors."""
    began, used = time.perf_counter(), time.process_time()
    run(idx)
    return time.perf_counter() - began, time.process_time() - used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    config = GPTConfig()
    every = passes(config)
    for n in given.tokens:
        idx = torch.randint(config.vocab_size, (1, n), generator=torch.Generator().manual_seed(0))
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in every}
        for number in range(given.rounds + 1):
            for name, run in every.items():
                took = seconds(run, idx)
                if number:  # the first round warms up
                    times[name].append(took)
        medians = {
            name: [statistics.median(each) for each in zip(*taken, strict=True)] for name, taken in times.items()
        }
        plain, theirs = medians["ours, plain"], medians["transformers, plain"]
        print(f"{n} tokens; {given.threads} threads; load of the machine {os.getloadavg()[0]:.1f}")
        for name, (wall, used) in medians.items():
            base = plain if name.startswith("ours") else theirs
            print(
                f"  {name}: {1000 * wall:.0f} ms, {wall / base[0]:.2f} x plain; processor time {used / base[1]:.2f} x"
            )


if __name__ == "__main__":
    main()
