"""Time of a traced forward pass relative to a plain one, ours and transformers'.

    python benchmarks/trace.py [--rounds 5] [--tokens 256 1024] [--threads N]

The shape of GPT-2 small with random weights, float32, one text. Each library runs in its own
process, in which plain and traced passes alternate. Ratios of the medians are printed, of wall-clock time and of
processor time, which depends less on other work on the machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch

from gpt import GPTConfig, Trace
from gpt.inference.packed_linear import pack
from gpt.model import GPT

ForwardPass = Callable[[torch.Tensor], object]


def ours(config: GPTConfig) -> tuple[ForwardPass, ForwardPass]:
    """Return the plain pass over ids (1, T), and the traced one."""
    model = GPT(config).eval()
    pack(model, "fp32")  # as a loaded model is
    return model, lambda idx: model(idx, trace=Trace())


def transformers(config: GPTConfig) -> tuple[ForwardPass, ForwardPass]:
    """Return the plain pass, and the one with output_attentions."""
    from transformers import GPT2Config, GPT2LMHeadModel

    shape = GPT2Config(
        vocab_size=config.vocab_size,
        n_positions=config.block_size,
        n_embd=config.n_embd,
        n_layer=config.n_layer,
        n_head=config.n_head,
        attn_implementation="eager",  # the only one of transformers that gives weights
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
    """Wall-clock and processor time of one pass."""
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
        print(f"{args.threads} threads; load of the machine {os.getloadavg()[0]:.1f}", flush=True)
        for name in MODELS:
            subprocess.run([sys.executable, __file__, *sys.argv[1:], "--measure", name], check=True)
        return
    torch.set_num_threads(args.threads)
    config = GPTConfig()
    plain, traced = MODELS[args.measure](config)
    for n in args.tokens:
        idx = torch.randint(config.vocab_size, (1, n), generator=torch.Generator().manual_seed(0))
        rounds = [(seconds(plain, idx), seconds(traced, idx)) for _ in range(args.rounds + 1)][1:]  # without warm-up
        (wall, used), (traced_wall, traced_used) = (
            [statistics.median(each) for each in zip(*times, strict=True)] for times in zip(*rounds, strict=True)
        )
        print(
            f"{n} tokens, {args.measure}: {1000 * wall:.0f} ms; traced {traced_wall / wall:.2f} x, "
            f"processor time {traced_used / used:.2f} x",
            flush=True,
        )


MODELS = {"ours": ours, "transformers": transformers}


if __name__ == "__main__":
    main()
