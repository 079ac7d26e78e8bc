"""Compare the speed of `generate` with transformers and with an earlier commit, on the bundled model in fp32.

    python -m benchmarks.generate [--rounds 5] [--tokens 128] [--against COMMIT] [--texts 1 16 32]

Decoding is greedy. Each measurement runs in a new process, and the engines take turns. Prints the CPU, the system load
and the medians. Several texts are generated in threads, as on a server, and compared only with the earlier commit.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROMPT = "Once upon a time, there was a little girl named Lily. She"


def ours(tokens: int, folder: str, n_texts: int) -> float:
    """Return the tokens per second of `gpt.generate`, from the code in a folder unless it is empty."""
    if folder:
        sys.path.insert(0, folder)
    from gpt import SamplingParams, generate, get_model

    loaded, greedy = get_model(), SamplingParams(temperature=0)

    def write(count: int) -> int:
        return len(list(generate(loaded, PROMPT, greedy, count)))

    with ThreadPoolExecutor(n_texts) as pool:
        list(pool.map(write, [8] * n_texts))
        began = time.perf_counter()
        made = sum(pool.map(write, [tokens] * n_texts))
        return made / (time.perf_counter() - began)


def transformers(tokens: int, folder: str, n_texts: int) -> float:
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


ENGINES = {"ours": ours, "before": ours, "transformers": transformers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--against", metavar="COMMIT", help="also measure the code of this commit")
    parser.add_argument("--texts", type=int, nargs="+", default=[1])
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.engine:
        print(ENGINES[args.engine](args.tokens, args.folder, args.texts[0]))
        return
    from benchmarks.decode import cpu_name
    from gpt.models.checkpoints.writing import convert
    from gpt.models.sources import BUNDLED

    with tempfile.TemporaryDirectory() as temporary:
        folders = {"ours": "", "transformers": str(Path(temporary) / "hf")}
        convert(BUNDLED, Path(folders["transformers"]), to="hf")
        if args.against:
            folders["before"] = str(Path(temporary) / "before")
            archive = subprocess.run(["git", "archive", args.against, "gpt"], cwd=ROOT, check=True, capture_output=True)
            with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
                tar.extractall(folders["before"], filter="data")
        print(f"{cpu_name()}; system load {os.getloadavg()[0]:.1f}")
        for n_texts in args.texts:
            compare(folders, args.rounds, args.tokens, n_texts)


def compare(folders: dict[str, str], rounds: int, tokens: int, n_texts: int) -> None:
    """Measure the engines in turns, and print the medians and the ratio of ours to each."""
    rates: dict[str, list[float]] = {name: [] for name in folders if n_texts == 1 or name != "transformers"}
    for _ in range(rounds):
        for name, values in rates.items():
            options = ["--engine", name, "--folder", folders[name], "--tokens", str(tokens), "--texts", str(n_texts)]
            command = [sys.executable, "-m", "benchmarks.generate", *options]
            values.append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    own, *others = (statistics.median(values) for values in rates.values())
    ratios = [f"{own / rate:.2f} x {name} ({rate:.0f})" for name, rate in zip(list(rates)[1:], others, strict=True)]
    print(f"{n_texts} together: {', '.join([f'{own:.0f} tokens/s', *ratios])}")


if __name__ == "__main__":
    main()
