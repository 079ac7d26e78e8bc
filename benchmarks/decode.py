"""Compare the greedy decoding speed of this app with other inference engines, on a model with random weights.

    python -m benchmarks.decode [--shape gpt2] [--rounds 5] [--engines ours-fp32 ours-int8 transformers-fp32 ...]

Each measurement runs in a new process, and the engines take turns. Prints medians, the system load, and the CPU with
the instruction set that torch uses. Skips engines whose package is missing; install them with
`pip install -r benchmarks/requirements.txt`. Also skips engines without kernels for the CPU: transformers in bfloat16
takes minutes without oneDNN's bfloat16 kernels.

rate: tokens per second for 128 tokens after a 32-token prompt.
far: speed of the last 64 tokens before position 900, relative to the first 64 tokens.
together: total tokens per second for a batch of 16 such texts.
first: seconds from the prompt to the first token.
memory: resident memory after loading and generating, not counting imports, relative to the size of the weights and a
    cache of 1,024 tokens.
shape: GPT-2 124M, SmolLM2 or Qwen3. SmolLM2 and Qwen3 run only in this app and in transformers.

To simulate an older CPU, restrict all engines (except onnxruntime, which can't be restricted) with
ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 CT2_FORCE_CPU_ISA=AVX2.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROMPT_TOKENS, NEW_TOKENS, FAR_POSITION, FAR_TOKENS, BATCH_SIZE = 32, 128, 900, 64, 16
CACHED_TOKENS = 1024
SETTLE_SECONDS = 2  # for what an engine does in the background after it has loaded a model
SHAPES = {"gpt2": "gpt2", "smollm2-135m": "SmolLM2-135M", "qwen3-0.6b": "Qwen3-0.6B"}  # names of the presets
WEIGHT_BYTES = {"fp32": 4, "half": 2, "bf16": 2, "int8": 1}


@dataclass(frozen=True)
class Engine:
    """An inference engine: `generate(prompt, count)` returns the time of each token; `generate_batch` runs a batch."""

    generate: Callable[[list[int], int], list[float]]
    generate_batch: Callable[[list[list[int]], int], object]


def prompt(length: int = PROMPT_TOKENS, seed: int = 0) -> list[int]:
    """Return irregular token ids that are the same in every process."""
    return [(1009 * (seed + 1) + 7919 * i * (i + seed)) % 49_000 for i in range(length)]


def ours(folder: Path, precision: str, device: str) -> Engine:
    from gpt import SamplingParams, generate, load_model

    loaded = load_model(folder / "hf", device=device, precision=precision)
    greedy = SamplingParams(temperature=0)

    def generate_one(ids: list[int], count: int) -> list[float]:
        return [time.perf_counter() for _ in generate(loaded, ids, greedy, count)]

    def generate_batch(prompts: list[list[int]], count: int) -> None:
        with ThreadPoolExecutor(len(prompts)) as pool:
            list(pool.map(lambda ids: generate_one(ids, count), prompts))

    return Engine(generate_one, generate_batch)


def transformers(folder: Path, precision: str, device: str) -> Engine:
    import torch
    from transformers import AutoModelForCausalLM

    dtype = torch.float32 if precision == "fp32" else torch.bfloat16
    model = AutoModelForCausalLM.from_pretrained(folder / "hf", dtype=dtype).eval().to(device)
    options: dict[str, Any] = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0}

    class Clock:
        """Streamer that records the time of each token. The first call passes the prompt."""

        def __init__(self) -> None:
            self.times: list[float] = []

        def put(self, value: object) -> None:
            self.times.append(time.perf_counter())

        def end(self) -> None:
            self.times = self.times[1:]

    def generate_one(ids: list[int], count: int) -> list[float]:
        clock = Clock()
        model.generate(torch.tensor([ids], device=device), max_new_tokens=count, streamer=clock, **options)
        return clock.times

    def generate_batch(prompts: list[list[int]], count: int) -> object:
        return model.generate(torch.tensor(prompts, device=device), max_new_tokens=count, **options).tolist()

    return Engine(generate_one, generate_batch)


def ctranslate2(folder: Path, precision: str, device: str) -> Engine:
    import ctranslate2 as ct

    kind = {"fp32": "float32"}.get(precision, precision)
    generator = ct.Generator(str(folder / f"ct2-{precision}"), compute_type=kind, intra_threads=os.cpu_count() or 1)
    vocabulary = json.loads((folder / f"ct2-{precision}" / "vocabulary.json").read_text(encoding="utf-8"))
    times: list[float] = []

    def run(prompts: list[list[int]], count: int, **options: object) -> None:
        words = [[vocabulary[token] for token in ids] for ids in prompts]
        exactly = {"max_length": count, "min_length": count, "include_prompt_in_result": False}
        generator.generate_batch(words, beam_size=1, **exactly, **options)

    def generate_one(ids: list[int], count: int) -> list[float]:
        times.clear()
        run([ids], count, callback=lambda step: bool(times.append(time.perf_counter())))
        return list(times)

    return Engine(generate_one, run)


def onnxruntime(folder: Path, precision: str, device: str) -> Engine:
    import numpy as np
    import onnxruntime as ort

    session = ort.InferenceSession(folder / f"onnx-{precision}.onnx", providers=["CPUExecutionProvider"])

    def generate_one(ids: list[int], count: int) -> list[float]:
        times, unread = [], ids
        k = v = np.zeros((12, 12, 0, 64), dtype=np.float32)
        for _ in range(count):
            logits, k, v = session.run(None, {"ids": np.array([unread]), "past_k": k, "past_v": v})
            unread = [int(logits.argmax())]
            times.append(time.perf_counter())
        return times

    def generate_batch(prompts: list[list[int]], count: int) -> None:
        with ThreadPoolExecutor(len(prompts)) as pool:  # the exported graphs have batch size 1
            list(pool.map(lambda ids: generate_one(ids, count), prompts))

    return Engine(generate_one, generate_batch)


LIBRARIES = {"ours": ours, "transformers": transformers, "ctranslate2": ctranslate2, "onnxruntime": onnxruntime}
NEEDS = {"onnxruntime": ("onnxruntime", "onnx")}
ON_GPU = ("ours-fp32", "ours-half", "transformers-fp32", "transformers-bf16")
ENGINES = (
    *("ours-fp32", "ours-half", "ours-int8"),
    *("transformers-fp32", "transformers-bf16", "ctranslate2-fp32", "ctranslate2-int8"),
    *("onnxruntime-fp32", "onnxruntime-int8"),
)


def cpu_name() -> str:
    """Return the CPU model, the instruction set that torch uses, and the number of cores."""
    import torch

    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown CPU")
    return f"{model}, {torch.backends.cpu.get_cpu_capability()}, {os.cpu_count()} cores"


def without_kernels(name: str) -> bool:
    """Return whether an engine has no kernels for this CPU, or can't be restricted to torch's instruction set."""
    from gpt.inference.packed_weights import has_bfloat16

    is_limited = "ATEN_CPU_CAPABILITY" in os.environ
    return (name == "transformers-bf16" and not has_bfloat16()) or (name.startswith("onnxruntime") and is_limited)


def measure(name: str, folder: Path, device: str, shape: str) -> dict[str, float]:
    """Measure one engine in this process."""
    library, precision = name.split("-")
    if library != "ours":
        __import__(library)
    import torch  # noqa: F401  imported first, so that no engine's memory includes it

    from gpt import PRESETS
    from gpt.experiments.shapes import cache_numbers, count_parameters

    before = resident()
    engine = LIBRARIES[library](folder, precision, device)
    engine.generate(prompt(), 4)
    memory = resident() - before
    time.sleep(SETTLE_SECONDS)
    began = time.perf_counter()
    near = engine.generate(prompt(), NEW_TOKENS)
    far = engine.generate(prompt(FAR_POSITION - FAR_TOKENS), FAR_TOKENS)
    start = time.perf_counter()
    engine.generate_batch([prompt(seed=seed) for seed in range(BATCH_SIZE)], NEW_TOKENS)
    total = time.perf_counter() - start
    config = PRESETS[SHAPES[shape]]
    needed = count_parameters(config) * WEIGHT_BYTES[precision] + 4 * cache_numbers(config) * CACHED_TOKENS
    return {
        "rate": rate(near),
        "far": rate(far) / rate(near[:FAR_TOKENS]),
        "together": BATCH_SIZE * NEW_TOKENS / total,
        "first": near[0] - began,
        "memory": memory / needed,
    }


def rate(times: list[float]) -> float:
    return (len(times) - 1) / (times[-1] - times[0])


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def prepare_family(folder: Path, shape: str) -> None:
    """Save a randomly initialised model from another family in transformers' format."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

    from gpt import PRESETS

    preset = PRESETS[SHAPES[shape]]
    options = {
        "vocab_size": preset.vocab_size,
        "hidden_size": preset.n_embd,
        "intermediate_size": preset.ff_size,
        "num_hidden_layers": preset.n_layer,
        "num_attention_heads": preset.n_head,
        "num_key_value_heads": preset.kv_heads,
        "head_dim": preset.head_size,
        "rms_norm_eps": preset.norm_eps,
        "max_position_embeddings": preset.block_size,
        "rope_parameters": {"rope_type": "default", "rope_theta": preset.rotary_base},
        "tie_word_embeddings": True,
    }
    torch.manual_seed(0)
    if preset.qk_norm:
        Qwen3ForCausalLM(Qwen3Config(**options)).save_pretrained(folder / "hf")
    else:
        LlamaForCausalLM(LlamaConfig(**options)).save_pretrained(folder / "hf")


def prepare(folder: Path, engines: list[str], shape: str) -> None:
    """Save a model with random weights in each engine's format."""
    import torch

    from gpt import GPT, PRESETS
    from gpt.models.checkpoints.writing import save_hugging_face
    from gpt.tokenizer import gpt2_tokenizer

    if shape != "gpt2":
        return prepare_family(folder, shape)
    torch.manual_seed(0)
    model = GPT(PRESETS["gpt2"]).eval()
    save_hugging_face(model, folder / "hf", gpt2_tokenizer())
    for name in engines:
        library, precision = name.split("-")
        if library == "ctranslate2":
            from ctranslate2.converters import TransformersConverter

            kind = {"fp32": "float32"}.get(precision, precision)
            TransformersConverter(str(folder / "hf")).convert(str(folder / f"ct2-{precision}"), quantization=kind)
        if library == "onnxruntime":
            from benchmarks.onnx_step import export

            export(model, folder / f"onnx-{precision}.onnx", int8=precision == "int8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, default="gpt2", help="model shape (gpt2)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES, metavar="ENGINE")
    parser.add_argument("--device", default="cpu", help="with cuda, only ours and transformers, and no memory figures")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.measure, args.folder, args.device, args.shape)))
        return
    missing = {
        library
        for library in LIBRARIES
        if not all(importlib.util.find_spec(package) for package in NEEDS.get(library, (library,)) if package != "ours")
    }
    engines = [name for name in args.engines if name.split("-")[0] not in missing]
    if args.shape != "gpt2":
        engines = [name for name in engines if name.split("-")[0] in ("ours", "transformers")]
    if args.device != "cpu":
        engines = [name for name in engines if name in ON_GPU]
    if missing:
        print(f"skipped, not installed: {', '.join(sorted(missing))}")
    if args.device == "cpu":
        print(cpu_name())
        if left_out := [name for name in engines if without_kernels(name)]:
            print(f"skipped, no kernels for this CPU: {', '.join(left_out)}")
        engines = [name for name in engines if name not in left_out]
    load = os.getloadavg()[0]  # before any engine runs
    results: dict[str, list[dict[str, float]]] = {name: [] for name in engines}
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), engines, args.shape)
        for _ in range(args.rounds):
            for name in engines:
                options = ["--folder", folder, "--device", args.device, "--shape", args.shape]
                command = [sys.executable, "-m", "benchmarks.decode", "--measure", name, *options]
                output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                results[name].append(json.loads(output.splitlines()[-1]))
    print(f"system load before: {load:.1f}; medians of {args.rounds} rounds")
    print(f"{'engine':20} {'tokens/s':>8} {'far':>6} {'16 together':>12} {'first token':>12} {'memory':>7}")
    for name, runs in results.items():
        all_of = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        together = f"{all_of['together']:.0f} ({all_of['together'] / all_of['rate']:.1f}x)"
        print(
            f"{name:20} {all_of['rate']:8.1f} {all_of['far']:5.2f}x {together:>12} {all_of['first']:10.3f} s "
            f"{all_of['memory']:6.2f}x"
        )


if __name__ == "__main__":
    main()
