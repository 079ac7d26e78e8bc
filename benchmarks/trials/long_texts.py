"""Long texts of more and more visitors: what they take in memory while they generate together, and after it.

    python -m benchmarks.trials.long_texts MODEL TOKENS VISITORS

Prints a JSON list. For 1, 2, 3, 5, ... visitors it has [bytes of their texts' activations and of their keys and values
once more, most bytes that the process grew by], and the last pair is that after all texts have ended: of their
activations alone.
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
from gpt.inference.packed_linear import freeze, pack
from gpt.models.memory import limit_arenas, read_fields, return_free_memory
from gpt.models.sources import BUNDLED
from gpt.tokenizer import gpt2_tokenizer

TEXTS = {"bundled": 240, "gpt2-shape": 900}  # tokens of each text of a model
STEPS = 3  # that the texts take together when another has come: the first of them may be alone
COUNTS = (1, 2, 3, 5, 9, 17)  # visitors when it is measured, and then all
OTHER_BYTES = 2**24  # by which a process may grow besides, and
VISITOR_BYTES = 2**20  # for the thread and the tokens of each visitor
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def long_texts(scale: float = 1.0) -> Result:
    """32 visitors come one after the other: memory is at most that of their texts, and of keys and values once more."""
    n, failures, said = max(5, round(32 * scale)), list[str](), list[str]()
    for model, tokens in TEXTS.items():
        command = [sys.executable, "-m", "benchmarks.trials.long_texts", model, str(tokens), str(n)]
        *joined, ended = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
        for needed, grown in (*joined, ended):
            if grown > 1.1 * needed + OTHER_BYTES + n * VISITOR_BYTES:
                failures.append(f"{model}: {grown / 2**20:.0f} MiB where {needed / 2**20:.0f} are needed")
        (needed, grown), after = joined[-1], ended[1]
        sizes = f"{grown / 2**20:.0f} MiB for {needed / 2**20:.0f} needed, {after / 2**20:.0f} after it"
        said.append(f"{tokens} tokens each of {model}: {sizes}")
    return Result("long texts at once", n * len(TEXTS), tuple(failures), "; ".join(said))


def main(name: str, tokens: int, visitors: int) -> None:
    """Measure in this process."""
    limit_arenas()  # like the app
    loaded = load_model(BUNDLED, device="cpu") if name == "bundled" else gpt2_shape()
    config = loaded.model.config
    copied = 4 * config.n_layer * 2 * config.kv_heads * config.head_size  # bytes of a position
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

        write([Generation(loaded, [1, 2]) for _ in range(visitors)])  # what every first pass takes
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
    """GPT-2 small with random weights."""
    config = GPTConfig(vocab_size=50_257, block_size=1024, n_layer=12, n_head=12, n_embd=768)
    model = GPT(config, generator=torch.Generator().manual_seed(0)).eval()
    pack(model, "fp32")
    freeze(model)
    return LoadedModel("gpt2-shape", model, gpt2_tokenizer(), torch.device("cpu"), "fp32")


def peak(call: Callable[[], object]) -> int:
    """Most bytes of this process in memory during a call."""
    gc.collect()
    return_free_memory()
    CLEAR.write_text("5")  # forget the peak before
    call()
    return 1024 * read_fields(STATUS)["VmHWM"]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
