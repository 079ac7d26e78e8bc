"""Measure the time to load a checkpoint and predict a token: python -m benchmarks.load_model [CHECKPOINT ...]

Without arguments, writes GPT-2 small with random weights to a temporary folder in each layout. Every load runs in a new
process, and imports are timed separately. The files are in the page cache, as they would be after a download.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

PROMPT = "Every effort moves you"
CHILD = """
import sys, time
start = time.perf_counter()
import torch
from gpt import load_model
imported = time.perf_counter()
loaded = load_model(sys.argv[1], device="cpu")
ready = time.perf_counter()
with torch.inference_mode():
    ids = loaded.tokenizer.encode(sys.argv[2]) if loaded.tokenizer.eot_id else [6109, 3626, 6100, 345]
    int(loaded.model(torch.tensor([ids]))[0, -1].argmax())
print(imported - start, ready - imported, time.perf_counter() - ready)
"""


def measure(checkpoint: Path, rounds: int) -> list[float]:
    """Return the seconds for imports, loading and the first token, from the fastest of several processes."""
    rows = []
    for _ in range(rounds):
        command = [sys.executable, "-c", CHILD, str(checkpoint), PROMPT]
        rows.append([float(word) for word in subprocess.check_output(command, text=True).split()])
    return min(rows, key=lambda row: row[1] + row[2])


def write_gpt2(folder: Path) -> list[Path]:
    """Write GPT-2 small with random weights as a Hugging Face folder, and in our format in two precisions."""
    import torch

    from gpt.config import PRESETS
    from gpt.model import GPT
    from gpt.models.checkpoints.writing import save_hugging_face, save_model
    from gpt.tokenizer import gpt2_tokenizer

    model, vocabulary = GPT(PRESETS["gpt2"]), gpt2_tokenizer()
    save_hugging_face(model, folder / "hugging-face-fp32", vocabulary)
    save_model(folder / "ours-fp32", model, vocabulary, dtype=torch.float32)
    save_model(folder / "ours-fp16", model, vocabulary, dtype=torch.float16)
    return sorted(folder.iterdir())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", type=Path, nargs="*", help="files or folders (GPT-2 small with random weights)")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'checkpoint':<20} {'import s':>9} {'load s':>9} {'first token s':>14} {'without imports s':>17}")
        for checkpoint in args.checkpoints or write_gpt2(Path(folder)):
            imports, load, first = measure(checkpoint, args.rounds)
            print(f"{checkpoint.name:<20} {imports:>9.2f} {load:>9.2f} {first:>14.2f} {load + first:>17.2f}")


if __name__ == "__main__":
    main()
