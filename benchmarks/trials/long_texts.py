"""Measure memory while more and more visitors generate long texts at once, and afterwards.

    python -m benchmarks.trials.long_texts MODEL TOKENS VISITORS

Prints a JSON list of pairs [bytes needed, peak growth of the process in bytes], for 1, 2, 3, 5, ... visitors. Bytes
needed are the texts' activations plus a second copy of keys and values. The last pair, measured after all texts have
ended, counts only the activations.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import torch

from benchmarks.trials.app_process import ROOT, Result
from gpt import GPT, Generation, GPTConfig, LoadedModel, SamplingParams, load_model
from gpt.models.memory import limit_arenas, read_fields, return_free_memory
from gpt.models.sources import BUNDLED
from gpt.tokenizer import gpt2_tokenizer

TEXTS = {"bundled": 240, "gpt2-shape": 900}  # tokens per text for each model
STEPS = 3  # shared steps after new texts have joined; more than one, because a text may run alone in the first
COUNTS = (1, 2, 3, 5, 9, 17)  # numbers of visitors to measure before the full number
OTHER_BYTES = 2**24  # additional memory allowed for the process
VISITOR_BYTES = 2**20  # additional memory allowed per visitor, for the thread and tokens
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def long_texts(scale: float = 1.0) -> Result:
    """Let 32 visitors join, and check that memory stays below their activations plus a copy of keys and values."""
    n, failures, said = max(5, round(32 * scale)), list[str](), list[str]()
    for model, tokens in TEXTS.items():
        command = [sys.executable, "-m", "benchmarks.trials.long_texts", model, str(tokens), str(n)]
        *joined, ended = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
        for needed, grown in (*joined, ended):
            if grown > 1.1 * needed + OTHER_BYTES + n * VISITOR_BYTES:
                failures.append(f"{model}: {grown / 2**20:.0f} MiB, but only {needed / 2**20:.0f} MiB are needed")
        (needed, grown), after = joined[-1], ended[1]
        sizes = f"{grown / 2**20:.0f} MiB used, {needed / 2**20:.0f} MiB needed, {after / 2**20:.0f} MiB afterwards"
        said.append(f"{model}, {tokens} tokens each: {sizes}")
    return Result("long texts at once", n * len(TEXTS), tuple(failures), "; ".join(said))


def main(name: str, tokens: int, visitors: int) -> None:
    """Measure one model in this process and print the pairs."""
    limit_arenas()  # as in the app
    loaded = load_model(BUNDLED, device="cpu") if name == "bundled" else gpt2_shape()
    config = loaded.model.config
    copied = 4 * config.n_layer * 2 * config.kv_heads * config.head_size  # bytes per position
    kept = copied + 4 * (config.n_layer * config.n_head * config.head_size + config.n_embd)
    counts = [*(count for count in COUNTS if count < visitors), visitors]
    n_first = tokens - STEPS * len(counts)
    with ThreadPoolExecutor(visitors) as pool:

        def write(texts: Sequence[Generation]) -> None:
            start = Barrier(len(texts))

            def write_one(text: Generation) -> None:
                start.wait()
                for _ in range(STEPS):
                    text.step(SamplingParams(seed=0))

            list(pool.map(write_one, texts))

        write([Generation(loaded, [1, 2]) for _ in range(visitors)])  # allocates buffers that every first pass needs
        Generation(loaded, [1] * n_first).read()
        for _ in range(2):
            loaded.engine.trim()
        before = peak(lambda: None)
        texts: list[Generation] = []
        pairs = []
        for count in counts:
            while len(texts) < count:
                texts.append(Generation(loaded, [1] * n_first))
                texts[-1].read()
            grown = peak(lambda: write(texts)) - before
            pairs.append((sum(text.n_read for text in texts) * (kept + copied), grown))
        for _ in range(2):
            loaded.engine.trim()
        pairs.append((sum(text.n_read for text in texts) * kept, peak(lambda: None) - before))
    print(json.dumps(pairs))


def gpt2_shape() -> LoadedModel:
    """Return GPT-2 small with random weights."""
    config = GPTConfig(vocab_size=50_257, block_size=1024, n_layer=12, n_head=12, n_embd=768)
    model = GPT(config, generator=torch.Generator().manual_seed(0)).eval()
    model.requires_grad_(False)
    return LoadedModel("gpt2-shape", model, gpt2_tokenizer(), torch.device("cpu"), "fp32")


def peak(call: Callable[[], object]) -> int:
    """Return the peak memory of this process during a call, in bytes."""
    gc.collect()
    return_free_memory()
    CLEAR.write_text("5")  # reset the peak
    call()
    return 1024 * read_fields(STATUS)["VmHWM"]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
