"""Check everything that depends on the device, and measure the speed on a GPU: python -m benchmarks.cuda

    python -m benchmarks.cuda [--device cuda] [--shape gpt2] [--rounds 3] [--tokens 128]

Needs torch, transformers, safetensors, tiktoken, tokenizers and threadpoolctl, but neither gradio nor a network; all
weights but those of the bundled model are random. Takes less than four minutes on a GPU. With `--device cpu`, every
line runs, but the numbers are compared with themselves. Prints a row per check, and ends with status 1 if one failed.

Differences are relative to the largest value of the CPU's result in float32.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from gpt import (
    GPT,
    PRESETS,
    Edits,
    Generation,
    GPTError,
    Hook,
    SamplingParams,
    Steering,
    generate,
    generate_batch,
    load_model,
    save_hugging_face,
    trace_text,
)
from gpt.analysis.patching import attribution_patching, patch_from, patch_sweep
from gpt.models.memory import format_bytes
from gpt.models.sources import DEFAULT_MODEL
from gpt.tokenizer import gpt2_tokenizer
from gpt.training.recipe import Recipe
from gpt.training.trainer import Batch, Process, Trainer
from tests.gpt.family_configs import FAMILIES, randomized
from tests.parity.family_models import OPTIONS, family_twins

LIMITS = {torch.float32: 1e-4, torch.bfloat16: 0.1, torch.float16: 0.02}  # random weights round coarsely
PROMPT = "Once upon a time, there was a little girl named Lily. She"
CLEAN, CORRUPTED = "Tom had a red ball. He liked the red", "Tom had a red ball. He liked the big"
TOGETHER = 32
GREEDY = SamplingParams(temperature=0)


class Wrong(Exception):
    """A check's result differs from the CPU's."""


def difference(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference, relative to the largest expected value."""
    found, expected = found.detach().double().cpu(), expected.detach().double().cpu()
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1e-9))


def check_differences(differences: dict[str, float], limit: float) -> str:
    """Return the largest of several differences as text. Raises Wrong if it exceeds the limit."""
    name = max(differences, key=lambda name: differences[name])
    text = f"{len(differences)} compared, largest difference {differences[name]:.1e} ({name})"
    if not differences[name] <= limit:  # NaN is not
        raise Wrong(text)
    return text


@torch.inference_mode()
def families(device: torch.device, dtype: torch.dtype) -> str:
    """Logits of a small model of every family, at once and, with a cache, token by token."""
    models = {name: randomized(GPT(config)) for name, config in FAMILIES.items()}
    models |= {family: family_twins(family, next(iter(cases))).ours for family, cases in OPTIONS.items()}
    found = {}
    for name, model in models.items():
        length = min(40, model.config.block_size)
        idx = torch.arange(7, 7 + 2 * length).view(2, length) * 31 % model.config.vocab_size
        expected = model(idx)
        here = deepcopy(model).to(device, dtype)
        found[name] = difference(here(idx.to(device)), expected)
        cache = here.new_cache(batch_size=2)
        steps = [here(idx[:, i : i + 1].to(device), cache=cache) for i in range(length)]
        found[f"{name}, cached"] = difference(torch.cat(steps, dim=1), expected)
    return check_differences(found, LIMITS[dtype])


def seeds(device: torch.device) -> str:
    """Texts of the bundled model with the same seeds, alone."""
    here, there = load_model(DEFAULT_MODEL, device=device), load_model(DEFAULT_MODEL, device="cpu")
    params = [SamplingParams(temperature=0.9, top_p=0.95, seed=seed) for seed in range(4)]
    for each in params:
        texts = ["".join(step.text for step in generate(loaded, PROMPT, each, 64)) for loaded in (here, there)]
        if texts[0] != texts[1]:
            raise Wrong(f"seed {each.seed}: {texts[0]!r} instead of {texts[1]!r}")
    return f"{len(params)} texts are those of the CPU"


def together(device: torch.device) -> str:
    """Texts in shared passes."""
    loaded = load_model(DEFAULT_MODEL, device=device)
    params = SamplingParams(temperature=0.9, seed=0)
    shared = generate_batch(loaded, [PROMPT], params, 48, n=TOGETHER)
    alone = [
        [step.token_id for step in generate(loaded, PROMPT, replace(params, seed=seed), 48)] for seed in range(TOGETHER)
    ]
    n_equal = sum(one == other for one, other in zip(shared, alone, strict=True))
    if n_equal < TOGETHER:
        raise Wrong(f"only {n_equal} of {TOGETHER} texts are as alone")
    return f"{TOGETHER} texts are as alone"


def activations(device: torch.device) -> str:
    """A full trace with its gradients, and traces with each kind of edit."""
    here, there = (load_model(DEFAULT_MODEL, device=place, trainable=True) for place in (device, "cpu"))
    config = there.model.config
    direction = torch.linspace(-2, 2, config.n_embd)
    patch = patch_from(there, CLEAN, "resid_post", 2, 5)
    edits = {
        "plain": None,
        "head off": Edits(head_scale={(1, 2): 0.0}, mlp_scale={3: 0.5}),
        "another activation": Edits(activation="relu"),
        "without positions": Edits(drop_positions=True),
        "patch": Edits(patches=(patch,)),
        "steering": Edits(steering=(Steering(4, direction),)),
        "hook": Edits(hooks=(Hook("mlp_post", 2, lambda x: x * 0.5, position=3),)),
    }
    found = {}
    for name, each in edits.items():
        one, other = (trace_text(loaded, CLEAN, each, full=True, gradients=each is None) for loaded in (here, there))
        found |= {f"{name}, {key}": difference(one[key], other[key]) for key in other.keys()}  # noqa: SIM118
        if each is None:
            for trace in (one, other):
                trace.logits[0, -1].max().backward()
            names = [key for key in other.keys() if other[key].grad is not None]  # noqa: SIM118
            found |= {f"gradient of {key}": difference(one[key].grad, other[key].grad) for key in names}
    return check_differences(found, 1e-3)


def patching(device: torch.device) -> str:
    """Sweeps of patches, and their estimates from gradients."""
    here, there = (load_model(DEFAULT_MODEL, device=place) for place in (device, "cpu"))
    answer, other = (there.tokenizer.encode(word)[0] for word in (" ball", " dog"))
    found = {}
    for name in ("resid_pre", "head_out"):
        for method in (patch_sweep, attribution_patching):
            one, two = (method(loaded, CLEAN, CORRUPTED, answer, other, name=name) for loaded in (here, there))
            found[f"{method.__name__}, {name}"] = difference(one.recovered, two.recovered)
    return check_differences(found, 1e-3)


def training(device: torch.device) -> str:
    """Losses of ten updates in float32, and of bfloat16 with dropout, which only have to fall."""
    recipe = Recipe(vocab_size=300, block_size=32, n_layer=2, n_head=2, n_embd=32, batch_size=4, steps=10, warmup=0)
    rows = torch.arange(4 * 33).view(4, 33) % 97
    losses = []
    for process in (Process(device), Process(torch.device("cpu"))):
        trainer = Trainer(recipe.new_model(300), recipe, process)
        losses.append(torch.tensor([trainer.update(Batch.of_rows(rows)) for _ in range(recipe.steps)]))
    text = check_differences({"losses": difference(*losses)}, 1e-2)
    dropping = replace(recipe, dropout=0.1)
    trainer = Trainer(dropping.new_model(300), dropping, Process(device, bf16=True))
    first, *_, last = [trainer.update(Batch.of_rows(rows)) for _ in range(recipe.steps)]
    if not last < first:
        raise Wrong(f"in bfloat16, the loss went from {first:.2f} to {last:.2f}")
    return f"{text}; in bfloat16 with dropout from {first:.2f} to {last:.2f}"


def out_of_memory(device: torch.device) -> str:
    """A text that needs too much memory, and one after it."""
    loaded = load_model(DEFAULT_MODEL, device=device)

    def too_much(x: Tensor) -> Tensor:
        if device.type == "cpu":  # where torch raises another error
            raise torch.OutOfMemoryError("as on a GPU")
        return x + torch.empty(2**44, device=device).sum()

    expected = [step.token_id for step in generate(loaded, PROMPT, GREEDY, 8)]
    try:
        list(generate(loaded, PROMPT, GREEDY, 8, edits=Edits(hooks=(Hook("resid_post", 3, too_much),))))
    except GPTError as error:
        sentence = str(error)
    else:
        raise Wrong("no error")
    if [step.token_id for step in generate(loaded, PROMPT, GREEDY, 8)] != expected:
        raise Wrong("the next text is another one")
    return f'"{sentence}", and the next text is right'


def memory(device: torch.device) -> str:
    """Memory of a document of 200 tokens, by its own count and by the device's."""
    loaded = load_model(DEFAULT_MODEL, device=device)
    ids = [(i * 37) % 4000 for i in range(200)]

    def allocated() -> int:
        return torch.cuda.memory_allocated(device) if device.type == "cuda" else 0

    documents = [Generation(loaded, ids)]
    documents[0].read()
    before = allocated()
    for _ in range(8):
        documents.append(Generation(loaded, ids))
        documents[-1].read()
    counted, measured = documents[-1].n_bytes, (allocated() - before) / 8
    if device.type == "cpu":
        return f"{format_bytes(counted)} by its own count"
    if not 0.8 < counted / measured < 1.25:
        raise Wrong(f"{format_bytes(counted)} counted, {format_bytes(int(measured))} allocated")
    return f"{format_bytes(counted)} counted, {format_bytes(int(measured))} allocated"


class Speed:
    """Tokens per second of one text, greedy, for a model with random weights in both libraries."""

    def __init__(self, device: torch.device, shape: str, rounds: int, n_tokens: int, folder: Path) -> None:
        self.device, self.rounds, self.n_tokens, self.folder = device, rounds, n_tokens, folder
        torch.manual_seed(0)
        model = GPT(PRESETS[shape]).eval()
        save_hugging_face(model, folder, gpt2_tokenizer())
        self.prompt = [(7919 * i * i) % model.config.vocab_size for i in range(32)]

    def ours(self, precision: str) -> Callable[[int], object]:
        loaded = load_model(self.folder, device=self.device, precision=precision)
        return lambda count: list(generate(loaded, self.prompt, GREEDY, count))

    def transformers(self, dtype: torch.dtype) -> Callable[[int], object]:
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(self.folder, dtype=dtype).eval().to(self.device)
        ids = torch.tensor([self.prompt], device=self.device)
        options = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0}
        return lambda count: model.generate(ids, max_new_tokens=count, min_new_tokens=count, **options)

    @torch.inference_mode()
    def graph(self, dtype: torch.dtype) -> Callable[[int], object]:
        """Return a loop over transformers' model with a static cache, each of its steps replayed as a CUDA graph."""
        from transformers import AutoModelForCausalLM, StaticCache

        model = AutoModelForCausalLM.from_pretrained(self.folder, dtype=dtype).eval().to(self.device)
        cache = StaticCache(config=model.config, max_cache_len=len(self.prompt) + self.n_tokens)
        step = torch.compile(model, backend="cudagraphs" if self.device.type == "cuda" else "eager")
        ids = torch.tensor([self.prompt], device=self.device)

        @torch.inference_mode()
        def write(count: int) -> None:
            cache.reset()
            places = torch.arange(len(self.prompt) + count, device=self.device)
            logits = model(ids, past_key_values=cache, position_ids=places[None, : ids.shape[1]]).logits
            for at in range(ids.shape[1], ids.shape[1] + count - 1):
                token = logits[:, -1:].argmax(-1).clone()  # a graph writes its logits to the same place each time
                logits = step(token, past_key_values=cache, position_ids=places[None, at : at + 1]).logits
            logits.argmax().item()

        return write

    def rows(self) -> Iterator[tuple[str, str]]:
        """Measure the engines in turns and yield their medians."""
        engines = {
            "this library, fp32": self.ours("fp32"),
            "this library, half": self.ours("half"),
            "transformers, fp32": self.transformers(torch.float32),
            "transformers, bfloat16": self.transformers(torch.bfloat16),
            "transformers, bfloat16, static cache and compiled step": self.graph(torch.bfloat16),
        }
        rates: dict[str, list[float]] = {name: [] for name in engines}
        for write in engines.values():
            write(self.n_tokens)
        for _ in range(self.rounds):
            for name, write in engines.items():
                began = time.perf_counter()
                write(self.n_tokens)
                rates[name].append(self.n_tokens / (time.perf_counter() - began))
        for name, values in rates.items():
            yield name, f"{statistics.median(values):.0f} tokens/s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", type=torch.device, default=torch.device("cuda"))
    parser.add_argument("--shape", default="gpt2", choices=[*PRESETS], metavar="PRESET")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=128)
    args = parser.parse_args()
    device = args.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}\n\n| check | result | seconds |\n|---|---|---|", flush=True)
    checks: dict[str, Callable[[], str]] = {
        f"logits of every family, {str(dtype).removeprefix('torch.')}": lambda dtype=dtype: families(device, dtype)
        for dtype in LIMITS
    }
    for check in (seeds, together, activations, patching, training, out_of_memory, memory):
        checks[check.__doc__.partition(".")[0].lower()] = lambda check=check: check(device)
    n_failed = 0
    for name, check in checks.items():
        began = time.perf_counter()
        try:
            result = check()
        except Exception as error:
            n_failed += 1
            result = f"FAILED: {error}"
            if not isinstance(error, Wrong):
                traceback.print_exc()
        print(f"| {name} | {result} | {time.perf_counter() - began:.1f} |", flush=True)
    with TemporaryDirectory() as folder:
        for name, result in Speed(device, args.shape, args.rounds, args.tokens, Path(folder)).rows():
            print(f"| {name} | {result} | |", flush=True)
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
