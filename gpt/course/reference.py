"""The reference for the course: the bundled model, its activations, and the numbers from the original experiments."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from gpt.config import GPTConfig
from gpt.generate import generate
from gpt.model import GPT
from gpt.models.checkpoints.writing import save_hugging_face
from gpt.models.loading import LoadedModel
from gpt.models.sources import BUNDLED, load_model
from gpt.sampling import SamplingParams, distribution
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
LONG_TEXT = 300  # tokens; longer than the context of 256
TRAINING_STEPS, BATCH_SIZE, LEARNING_RATE = 200, 16, 3e-3


class Reference:
    """Inputs and expected results for the tests, computed on first use, on the CPU in float32."""

    @cached_property
    def loaded(self) -> LoadedModel:
        """The bundled model, with trainable parameters."""
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
    def trace(self) -> Trace:
        """Activations for the first two texts."""
        trace = Trace()
        with torch.no_grad():
            self.model(self.idx[:2], trace=trace)
        return trace

    @property
    def layer(self) -> LayerTrace:
        return self.trace.layers[0]

    @property
    def attn_input(self) -> Tensor:
        return self.model.blocks[0].ln_1.formula(self.layer.resid_pre)

    @property
    def mlp_input(self) -> Tensor:
        return self.model.blocks[0].ln_2.formula(self.layer.resid_mid)

    @torch.no_grad()
    def logits(self, idx: Tensor) -> Tensor:
        return self.model(idx)

    def weights(self, part: str = "") -> dict[str, Tensor]:
        """Return the parameters of a part of the bundled model, such as "h.0.ln_1", keyed by name within the part."""
        return state(self.model.get_submodule(part))

    @cached_property
    def short(self) -> GPT:
        """The bundled model, reduced to two layers and a context of 12."""
        return shortened(self.model, n_layer=2, block_size=12)

    @cached_property
    def small(self) -> GPT:
        """A tiny model with random weights, for sorting letters."""
        config = GPTConfig(vocab_size=28, block_size=17, n_layer=2, n_head=2, n_embd=32)
        return GPT(config, generator=torch.Generator().manual_seed(0))

    @property
    def small_model(self) -> dict[str, Any]:
        """Inputs for a test: configuration and initial weights of the small model."""
        return {"config": config_of(self.small), "weights": state(self.small)}

    @cached_property
    def long_text(self) -> Tensor:
        """The first of TEXTS, continued greedily by LONG_TEXT tokens, as in the app: (1, T)."""
        ids, end = self.idx[0].tolist(), self.idx.shape[1] + LONG_TEXT
        while len(ids) < end:  # after the end of a story, start another
            steps = generate(self.loaded, ids, SamplingParams(temperature=0), end - len(ids), on_full="crop")
            ids += [step.token_id for step in steps]
        return torch.tensor([ids])

    def probabilities(self, **settings: Any) -> Tensor:
        """Return the distribution, (vocab_size,), from which the app draws the next token after the first of TEXTS."""
        return distribution(self.logits(self.idx[:1])[0, -1], SamplingParams(**settings)).final

    @cached_property
    def batches(self) -> Tensor:
        """Sorting examples like "qbdazkce>abcdekqz", ending with a test batch: (TRAINING_STEPS + 1, BATCH_SIZE, T)."""
        task = TaskDataset(TASKS["sort"])
        rows = task.batch(0, TRAINING_STEPS * BATCH_SIZE).idx, task.validation.idx[:BATCH_SIZE]
        return torch.cat(rows).view(TRAINING_STEPS + 1, BATCH_SIZE, -1)

    def trained(self, batches: Tensor) -> list[float]:
        """Train the small model. Returns the loss before each update, followed by the loss on the test batch."""
        model = shortened(self.small)
        optimizer, losses = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE), []
        for ids in batches:
            error = model.loss(ids[:, :-1], ids[:, 1:])
            optimizer.zero_grad()
            error.backward()
            optimizer.step()
            losses.append(error.item())
        held_out = self.batches[-1]
        return [*losses, model.loss(held_out[:, :-1], held_out[:, 1:]).item()]

    @cached_property
    def gpt2_folder(self) -> str:
        """Folder with the short model, in the format that transformers uses for GPT-2."""
        self._temporary = TemporaryDirectory(prefix="glassbox-course-")
        folder = Path(self._temporary.name) / "gpt2"
        save_hugging_face(self.short, folder, self.loaded.tokenizer)
        return str(folder)

    def loss_and_gradient(self, idx: Tensor) -> Tensor:
        """Return the short model's loss, followed by the gradient of its first norm: (1 + n_embd,)."""
        model = self.short
        error = model.loss(idx[:, :-1], idx[:, 1:])
        (gradient,) = torch.autograd.grad(error, [model.get_parameter("h.0.ln_1.weight")])
        return torch.cat([error.detach()[None], gradient])


def config_of(model: GPT) -> dict[str, Any]:
    """Return the arguments for the learner's `Config` that match a model."""
    return {name: getattr(model.config, name) for name in CONFIG} | {"qkv_bias": model.config.has_qkv_bias}


def state(module: nn.Module) -> dict[str, Tensor]:
    """Return a module's parameters. A shared matrix appears under both of its names."""
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def shortened(model: GPT, **shape: Any) -> GPT:
    """Return a copy of a model with fewer layers or a shorter context."""
    config = replace(model.config, **shape)
    weights = state(model)
    short = GPT(config)
    weights["wpe.weight"] = weights["wpe.weight"][: config.block_size]
    short.load_state_dict({name: weights[name] for name in short.state_dict()})
    return short.eval()
