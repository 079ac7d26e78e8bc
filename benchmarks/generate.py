"""Compare the speed of `generate` with transformers, on the bundled model in fp32.

    python benchmarks/generate.py [--rounds 5] [--tokens 128]

Decoding is greedy, with batch size 1. Each measurement runs in a new process, and the two take turns. Prints medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
PROMPT = "Once upon a time, there was a little girl named Lily. She"


def ours(tokens: int, folder: str) -> float:
    """Return the tokens per second of `gpt.generate`."""
    from gpt import SamplingParams, generate, get_model

    loaded = get_model()
    greedy = SamplingParams(temperature=0)
    list(generate(loaded, PROMPT, greedy, 8))
    began = time.perf_counter()
    made = len(list(generate(loaded, PROMPT, greedy, tokens)))
    return made / (time.perf_counter() - began)


def transformers(tokens: int, folder: str) -> float:
    """Return the tokens per second of transformers' `generate`, with its cache."""
    import torch
    from transformers import GPT2LMHeadModel

    from gpt import get_model

    model = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32).eval()  # the weights are stored in float16
    ids = torch.tensor([get_model().tokenizer.encode(PROMPT)])
    options = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    model.generate(ids, max_new_tokens=8, **options)
    began = time.perf_counter()
    made = model.generate(ids, max_new_tokens=tokens, **options).shape[1] - ids.shape[1]
    return made / (time.perf_counter() - began)


ENGINES = {"ours": ours, "transformers": transformers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.engine:
        print(ENGINES[args.engine](args.tokens, args.folder))
        return
    from gpt.models.checkpoints import convert
    from gpt.models.sources import BUNDLED

    with tempfile.TemporaryDirectory() as temporary:
        folder = str(Path(temporary) / "hf")
        convert(BUNDLED, Path(folder), to="hf")
        rates: dict[str, list[float]] = {name: [] for name in ENGINES}
        for _ in range(args.rounds):
            for name in ENGINES:
                options = ["--engine", name, "--folder", folder, "--tokens", str(args.tokens)]
                command = [sys.executable, __file__, *options]
                rates[name].append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    print(f"system load: {os.getloadavg()[0]:.1f}")
    for name, rate in medians.items():
        print(f"{name}: {rate:.0f} tokens/s, {rate / medians['transformers']:.2f} x transformers")


if __name__ == "__main__":
    main()
