"""Compare the time of forward passes with and without tracing, in this app and in transformers.

    python -m benchmarks.trace [--rounds 5] [--tokens 256 1024] [--threads N]

Uses one text and GPT-2 small with random weights in float32. Each library runs in its own process, where plain and
traced passes take turns. Prints ratios of the medians for wall-clock time and for CPU time, which depends less on
other load on the machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import torch

from gpt import GPTConfig, Trace
from gpt.inference.packed_weights import pack, packs_float32
from gpt.model import GPT

ForwardPass = Callable[[torch.Tensor], object]


def ours(config: GPTConfig) -> tuple[ForwardPass, ForwardPass]:
    """Return functions that run a plain and a traced pass over ids (1, T)."""
    model = GPT(config).eval()
    if packs_float32():  # as in a loaded model
        pack(model, "fp32")
    return model, lambda idx: model(idx, trace=Trace())


def transformers(config: GPTConfig) -> tuple[ForwardPass, ForwardPass]:
    """Return functions that run a plain pass, and a pass with `output_attentions`."""
    from transformers import GPT2Config, GPT2LMHeadModel

    shape = GPT2Config(
        vocab_size=config.vocab_size,
        n_positions=config.block_size,
        n_embd=config.n_embd,
        n_layer=config.n_layer,
        n_head=config.n_head,
        attn_implementation="eager",  # the only implementation that returns weights
    )
    traced = GPT2LMHeadModel(shape).eval()
    shape.attn_implementation = "sdpa"
    plain = GPT2LMHeadModel(shape).eval()
    plain.load_state_dict(traced.state_dict())
    return (
        lambda idx: plain(idx, use_cache=False),
        lambda idx: traced(idx, use_cache=False, output_attentions=True),
    )


@torch.inference_mode()
def seconds(run: Callable[[torch.Tensor], object], idx: torch.Tensor) -> tuple[float, float]:
    """Return the wall-clock and the CPU time of one pass, in seconds."""
    began, used = time.perf_counter(), time.process_time()
    run(idx)
    return time.perf_counter() - began, time.process_time() - used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--measure", choices=sorted(MODELS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not args.measure:
        print(f"{args.threads} threads; system load {os.getloadavg()[0]:.1f}", flush=True)
        for name in MODELS:
            subprocess.run([sys.executable, "-m", "benchmarks.trace", *sys.argv[1:], "--measure", name], check=True)
        return
    torch.set_num_threads(args.threads)
    config = GPTConfig()
    plain, traced = MODELS[args.measure](config)
    for n in args.tokens:
        idx = torch.randint(config.vocab_size, (1, n), generator=torch.Generator().manual_seed(0))
        rounds = [(seconds(plain, idx), seconds(traced, idx)) for _ in range(args.rounds + 1)][1:]  # drop the warm-up
        (wall, used), (traced_wall, traced_used) = (
            [statistics.median(each) for each in zip(*times, strict=True)] for times in zip(*rounds, strict=True)
        )
        print(
            f"{n} tokens, {args.measure}: {1000 * wall:.0f} ms; traced {traced_wall / wall:.2f} x, "
            f"CPU time {traced_used / used:.2f} x",
            flush=True,
        )


MODELS = {"ours": ours, "transformers": transformers}


if __name__ == "__main__":
    main()
