"""The bundled model, on which the tests of the course run, and the inputs that a test's lines can name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
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
from gpt.training.tasks import TASKS, TaskDataset

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


class Reference:
    """The bundled model with trainable parameters, in float32 on the CPU. Everything is computed on first use."""

    @cached_property
    def loaded(self) -> LoadedModel:
        return load_model(BUNDLED, device="cpu", trainable=True)

    @property
    def model(self) -> GPT:
        return self.loaded.model

    @cached_property
    def idx(self) -> Tensor:
        """Token ids of TEXTS, truncated to the length of the shortest text: (10, T)."""
        rows = [self.loaded.tokenizer.encode(text) for text in TEXTS]
        return torch.tensor([row[: min(map(len, rows))] for row in rows])

    @cached_property
    def layer(self) -> LayerTrace:
        """Activations of layer 0 for the first two texts."""
        trace = Trace()
        with torch.no_grad():
            self.model(self.idx[:2], trace=trace)
        return trace.layers[0]

    @torch.no_grad()
    def logits(self, idx: Tensor) -> Tensor:
        return self.model(idx)

    def weights(self, part: str = "") -> dict[str, Tensor]:
        """Return the parameters of a part of the bundled model, such as "h.0.ln_1", keyed by name within the part.

        A shared matrix appears under both of its names.
        """
        return self.model.get_submodule(part).state_dict()

    @cached_property
    def short(self) -> GPT:
        """The bundled model, reduced to two layers and a context of 12."""
        short = GPT(replace(self.model.config, n_layer=2, block_size=12))
        weights = self.weights()
        weights["wpe.weight"] = weights["wpe.weight"][:12]
        short.load_state_dict({name: weights[name] for name in short.state_dict()})
        return short.eval()

    @cached_property
    def small(self) -> GPT:
        """A tiny model with random weights, for sorting letters."""
        config = GPTConfig(vocab_size=28, block_size=17, n_layer=2, n_head=2, n_embd=32)
        return GPT(config, generator=torch.Generator().manual_seed(0))

    @cached_property
    def gpt2_folder(self) -> str:
        """Folder with the short model, in the format that transformers uses for GPT-2."""
        self._temporary = TemporaryDirectory(prefix="glassbox-course-")
        folder = Path(self._temporary.name) / "gpt2"
        save_hugging_face(self.short, folder, self.loaded.tokenizer)
        return str(folder)

    @cache  # noqa: B019 - a reference lives as long as the program
    def input(self, name: str) -> Any:
        return INPUTS[name](self)

    def inputs(self, lines: str) -> dict[str, Any]:
        """Return those of INPUTS that lines of Python name."""
        return {name: self.input(name) for name in names_in(lines) & INPUTS.keys()}


INPUTS: dict[str, Callable[[Reference], Any]] = {
    "idx": lambda reference: reference.idx,
    "config": lambda reference: config_of(reference.model),
    "weights": lambda reference: reference.weights(),
    "wte": lambda reference: reference.weights("wte"),
    "wpe": lambda reference: reference.weights("wpe"),
    "ln_1": lambda reference: reference.weights("h.0.ln_1"),
    "attn": lambda reference: reference.weights("h.0.attn"),
    "mlp": lambda reference: reference.weights("h.0.mlp"),
    "block": lambda reference: reference.weights("h.0"),
    "x": lambda reference: reference.layer.resid_pre,
    "attn_input": lambda reference: reference.model.blocks[0].ln_1.formula(reference.layer.resid_pre).detach(),
    "mlp_input": lambda reference: reference.model.blocks[0].ln_2.formula(reference.layer.resid_mid).detach(),
    "q": lambda reference: reference.layer.attn_q,
    "k": lambda reference: reference.layer.attn_k,
    "v": lambda reference: reference.layer.attn_v,
    "logits": lambda reference: reference.logits(reference.idx[:1])[0, -1],
    "app_text": lambda reference: app_text(reference.loaded, reference.idx[:1], 300),
    "short_config": lambda reference: config_of(reference.short),
    "short_weights": lambda reference: reference.short.state_dict(),
    "small_config": lambda reference: config_of(reference.small),
    "small_weights": lambda reference: reference.small.state_dict(),
    "bundled_folder": lambda reference: str(BUNDLED),
    "gpt2_folder": lambda reference: reference.gpt2_folder,
    "book_rows": lambda reference: linear_relu_rows(seed=123),
    "deep_weights": lambda reference: deep_weights(),
    "batches": lambda reference: TaskDataset(TASKS["sort"]).batch(0, N_BATCHES * BATCH_SIZE).idx.split(BATCH_SIZE),
    "unseen": lambda reference: TaskDataset(TASKS["sort"]).validation.idx[:BATCH_SIZE],
}


def app_text(loaded: LoadedModel, idx: Tensor, n_tokens: int) -> Tensor:
    """Return a text (1, T) and its greedy continuation by the app, which is cropped to the context."""
    ids, end = idx[0].tolist(), idx.shape[1] + n_tokens
    while len(ids) < end:  # after the end of a story, start another
        steps = generate(loaded, ids, SamplingParams(temperature=0), end - len(ids), on_full="crop")
        ids += [step.token_id for step in steps]
    return torch.tensor([ids])


def deep_weights() -> dict[str, Tensor]:
    """Return the weights of the five layers in the original experiment on shortcuts."""
    with seeded(123):
        return DeepNetwork([3] * 5 + [1], shortcuts=True).layers.state_dict()


def config_of(model: GPT) -> dict[str, Any]:
    """Return the arguments for the learner's `Config` that match a model."""
    return {name: getattr(model.config, name) for name in CONFIG} | {"qkv_bias": model.config.has_qkv_bias}
