"""Measure the time and the memory to open a GGUF file: python -m benchmarks.open_gguf [--rounds 5]

Writes a model of GPT-2's shape with random weights and GPT-2's vocabulary as safetensors in float16, and as GGUF in
several types. Opens them in turn, each time in a new process, and prints medians: the seconds after the imports, their
ratio to safetensors, and the peak of the memory as a multiple of the opened model's.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CHILD = """
import sys, time, threading
import torch
from gpt.models.sources import find_source
from gpt.models.loading import build
def rss():
    return sum(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(("RssAnon", "RssShmem")))
before, peak, done = rss(), 0, False
def watch():
    global peak
    while not done:
        peak = max(peak, rss())
        time.sleep(0.002)
if sys.argv[2] == "memory":
    threading.Thread(target=watch, daemon=True).start()
start = time.perf_counter()
loaded = build("model", find_source(sys.argv[1]).open(), torch.device("cpu"), sys.argv[3])
seconds, done = time.perf_counter() - start, True
print(seconds, (max(peak, rss()) - before) / (rss() - before))
"""


def measure(path: Path, what: str, precision: str) -> list[float]:
    """Return the seconds and the peak of one process. what: "time", or "memory", which slows the process down."""
    command = [sys.executable, "-c", CHILD, str(path), what, precision]
    return [float(word) for word in subprocess.check_output(command, text=True).split()]


def write_models(folder: Path, kinds: list[str]) -> list[Path]:
    """Write the safetensors folder and the GGUF files."""
    import torch

    from gpt.config import PRESETS
    from gpt.model import GPT
    from gpt.models.checkpoints.writing import save_gguf, save_hugging_face
    from gpt.tokenizer import gpt2_tokenizer

    model, vocabulary = GPT(PRESETS["gpt2"]), gpt2_tokenizer()
    save_hugging_face(model, folder / "safetensors-F16", vocabulary, dtype=torch.float16)
    for kind in kinds:
        save_gguf(model, folder / f"{kind}.gguf", vocabulary, kind=kind)
    return [folder / "safetensors-F16", *(folder / f"{kind}.gguf" for kind in kinds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--precision", default="fp32", choices=("fp32", "half", "int8"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = write_models(Path(folder), ["F16", "Q8_0"])
        rounds = [[measure(path, "time", args.precision)[0] for path in paths] for _ in range(args.rounds)]
        seconds = [statistics.median(each) for each in zip(*rounds, strict=True)]
        print(f"{'file':<20} {'seconds':>8} {'ratio':>6} {'peak':>6}")
        for path, each in zip(paths, seconds, strict=True):
            peak = measure(path, "memory", args.precision)[1]
            print(f"{path.name:<20} {each:>8.2f} {each / seconds[0]:>6.2f} {peak:>6.2f}")


if __name__ == "__main__":
    main()
