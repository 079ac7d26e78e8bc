"""The bundled model, on which the tests of the course run, and the inputs that a test's lines can name.

Everything is computed on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from gpt.config import GPTConfig
from gpt.course.steps import names_in
from gpt.experiments.layers import linear_relu_rows
from gpt.experiments.minimal import DeepNetwork
from gpt.generate import generate
from gpt.layers import seeded
from gpt.model import GPT
from gpt.models.checkpoints.writing import save_hugging_face
from gpt.models.loading import LoadedModel
from gpt.models.sources import BUNDLED, load_model
from gpt.sampling import SamplingParams
from gpt.trace import LayerTrace, Trace
from gpt.training.data import TASKS, TaskDataset

TEXTS = (
    "Tom was sad because he lost his",
    "Once upon a time there was a little",
    "Lily had a red ball. One day the",
    "The dog ran to the park and saw",
    "Mom said it was time to go to",
    "A small bird sat in a big tree",
    "Ben wanted to play, but it was raining",
    "She opened the box and found a shiny",
    "The cat and the mouse were good friends",
    "They were tired, so they went back home",
)
CONFIG = ("vocab_size", "block_size", "n_layer", "n_head", "n_embd", "qkv_bias", "tie_weights")
N_BATCHES, BATCH_SIZE = 200, 16  # examples like "qbdazkce>abcdekqz"


@cache
def bundled() -> LoadedModel:
    """Return the bundled model with trainable parameters, in float32 on the CPU."""
    return load_model(BUNDLED, device="cpu", trainable=True)


@cache
def idx() -> Tensor:
    """Return the token ids of TEXTS, truncated to the length of the shortest text: (10, T)."""
    rows = [bundled().tokenizer.encode(text) for text in TEXTS]
    return torch.tensor([row[: min(map(len, rows))] for row in rows])


@cache
def layer() -> LayerTrace:
    """Return the activations of layer 0 for the first two texts."""
    trace = Trace()
    with torch.no_grad():
        bundled().model(idx()[:2], trace=trace)
    return trace.layers[0]


@torch.no_grad()
def logits() -> Tensor:
    """Return the logits after the first text, (vocab_size,)."""
    return bundled().model(idx()[:1])[0, -1]


def weights(part: str = "") -> dict[str, Tensor]:
    """Return the parameters of a part of the bundled model, such as "h.0.ln_1", keyed by name within the part.

    A shared matrix appears under both of its names.
    """
    return bundled().model.get_submodule(part).state_dict()


@cache
def short() -> GPT:
    """Return the bundled model, reduced to two layers and a context of 12."""
    model = GPT(replace(bundled().model.config, n_layer=2, block_size=12))
    values = weights()
    values["wpe.weight"] = values["wpe.weight"][:12]
    model.load_state_dict({name: values[name] for name in model.state_dict()})
    return model.eval()


@cache
def small() -> GPT:
    """Return a tiny model with random weights, for sorting letters."""
    config = GPTConfig(vocab_size=28, block_size=17, n_layer=2, n_head=2, n_embd=32)
    return GPT(config, generator=torch.Generator().manual_seed(0))


@cache
def gpt2_folder() -> TemporaryDirectory[str]:
    """Return a folder with the short model, in the format that transformers uses for GPT-2."""
    folder = TemporaryDirectory(prefix="glassbox-course-")
    save_hugging_face(short(), folder.name, bundled().tokenizer)
    return folder


@cache
def app_text() -> Tensor:
    """Return the first text and 300 tokens of its greedy continuation by the app, which is cropped to the context."""
    ids = idx()[0].tolist()
    end = len(ids) + 300
    while len(ids) < end:  # after the end of a story, start another
        steps = generate(bundled(), ids, SamplingParams(temperature=0), end - len(ids), on_full="crop")
        ids += [step.token_id for step in steps]
    return torch.tensor([ids])


def deep_weights() -> dict[str, Tensor]:
    """Return the weights of the five layers in the original experiment on shortcuts."""
    with seeded(123):
        return DeepNetwork([3] * 5 + [1], shortcuts=True).layers.state_dict()


def config_of(model: GPT) -> dict[str, Any]:
    """Return the arguments for the learner's `Config` that match a model."""
    return {name: getattr(model.config, name) for name in CONFIG} | {"qkv_bias": model.config.has_bias("qkv")}


INPUTS: dict[str, Callable[[], Any]] = {
    "idx": idx,
    "config": lambda: config_of(bundled().model),
    "weights": weights,
    "wte": lambda: weights("wte"),
    "wpe": lambda: weights("wpe"),
    "ln_1": lambda: weights("h.0.ln_1"),
    "attn": lambda: weights("h.0.attn"),
    "mlp": lambda: weights("h.0.mlp"),
    "block": lambda: weights("h.0"),
    "x": lambda: layer().resid_pre,
    "attn_input": lambda: bundled().model.blocks[0].ln_1.formula(layer().resid_pre).detach(),
    "mlp_input": lambda: bundled().model.blocks[0].ln_2.formula(layer().resid_mid).detach(),
    "q": lambda: layer().attn_q,
    "k": lambda: layer().attn_k,
    "v": lambda: layer().attn_v,
    "logits": logits,
    "app_text": app_text,
    "short_config": lambda: config_of(short()),
    "short_weights": lambda: short().state_dict(),
    "small_config": lambda: config_of(small()),
    "small_weights": lambda: small().state_dict(),
    "bundled_folder": lambda: str(BUNDLED),
    "gpt2_folder": lambda: gpt2_folder().name,
    "book_rows": lambda: linear_relu_rows(seed=123),
    "deep_weights": deep_weights,
    "batches": lambda: TaskDataset(TASKS["sort"]).batch(0, N_BATCHES * BATCH_SIZE).idx.split(BATCH_SIZE),
    "unseen": lambda: TaskDataset(TASKS["sort"]).validation.idx[:BATCH_SIZE],
}


@cache
def inputs(lines: str) -> dict[str, Any]:
    """Return those of INPUTS that lines of Python name."""
    return {name: INPUTS[name]() for name in names_in(lines) & INPUTS.keys()}
