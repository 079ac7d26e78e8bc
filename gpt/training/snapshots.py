"""Snapshots of a training run: small copies of the weights, saved after steps that are spaced on a log scale.

A folder contains config.json (the model's configuration), the vocabulary, one <step>.safetensors per snapshot,
figures.json (measurements for each snapshot) and README.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.model import GPT, meta_model
from gpt.models.checkpoints.files import CONFIG
from gpt.models.checkpoints.untrusted import open_safetensors, read_json
from gpt.models.checkpoints.vocabularies import find_vocabulary, write_vocabulary
from gpt.tokenizer import Vocabulary

FIGURES = "figures.json"
FIRST_SHARE = 1 / 256  # fraction of the updates made before the first snapshot of trained weights
SCALE = ".scale"  # suffix for a matrix's scales


def snapshot_steps(steps: int, n: int) -> tuple[int, ...]:
    """Return at most `n` steps from 0 to `steps`, on a log scale after 0. Both ends are included if n is at least 2."""
    if n < 2:
        return (0,)[:n]
    after = np.geomspace(steps, max(1, steps * FIRST_SHARE), n - 1).round().astype(int)
    return (0, *sorted(set(after.tolist())))


def pack_weights(model: GPT) -> dict[str, Tensor]:
    """Return a compact copy of the weights: matrices in int8 with a float16 scale per row, vectors in float16."""
    packed: dict[str, Tensor] = {}
    for name, value in model.state_dict().items():
        if name == "lm_head.weight" and model.config.tie_weights:
            continue
        weight = value.detach().float().cpu()
        if weight.dim() < 2:
            packed[name] = weight.half()
            continue
        scale = (weight.abs().amax(dim=1) / 127).half().clamp(min=torch.finfo(torch.float16).tiny)
        packed[name] = (weight / scale.float()[:, None]).round().clamp(-127, 127).to(torch.int8)
        packed[name + SCALE] = scale
    return packed


def unpack_model(config: GPTConfig, packed: Mapping[str, Tensor]) -> GPT:
    """Build the model from the result of `pack_weights`, in float32 and evaluation mode."""
    state = {
        name: value.float() * packed[name + SCALE].float()[:, None] if name + SCALE in packed else value.float()
        for name, value in packed.items()
        if not name.endswith(SCALE)
    }
    if config.tie_weights:
        state["lm_head.weight"] = state["wte.weight"]
    model = meta_model(config)
    model.load_state_dict(state, assign=True)
    if config.tie_weights:
        model.lm_head.weight = model.wte.weight
    return model.eval().requires_grad_(False)


def save_snapshot(folder: Path, step: int, model: GPT, tokenizer: Vocabulary) -> None:
    """Write the packed weights after `step` updates to a folder, with the configuration and vocabulary."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / CONFIG).is_file():
        write_vocabulary(tokenizer, folder)
        (folder / CONFIG).write_text(json.dumps(asdict(model.config), indent=2) + "\n", encoding="utf-8")
    path = folder / f"{step}.safetensors"
    save_file(pack_weights(model), path)
    path.chmod(0o644)  # safetensors creates files that only the owner can read


@dataclass(frozen=True)
class SnapshotFigures:
    """Measurements for one snapshot.

    loss, bits_per_byte: loss on the held-back text in nats per token and in bits per byte. induction, previous_token:
    (n_layer, n_head), scores of all heads on repeated random tokens. copy_loss: nats per token on the second copy, see
    `gpt.analysis.heads`. sample: continuation of the prompt.
    """

    step: int
    tokens: int
    loss: float
    bits_per_byte: float
    copy_loss: float
    induction: list[list[float]]
    previous_token: list[list[float]]
    prompt: str
    sample: str


class Snapshots:
    """A folder of snapshots. Raises ValueError if it has no snapshots or a damaged config.json."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps = tuple(sorted(int(path.stem) for path in folder.glob("*.safetensors") if path.stem.isdigit()))
        if not self.steps:
            raise GPTError("training.no_snapshots", folder=folder)
        self.config = GPTConfig(**read_json(folder / CONFIG, dict))

    @cached_property
    def tokenizer(self) -> Vocabulary:
        return find_vocabulary(self.folder, self.config.vocab_size)

    def model(self, step: int) -> GPT:
        """Load the model after `step` updates, which must be one of `steps`."""
        return unpack_model(self.config, open_safetensors(self.folder / f"{step}.safetensors"))

    def save_figures(self, figures: list[SnapshotFigures]) -> None:
        rows = ",\n".join(json.dumps(asdict(each), ensure_ascii=False) for each in figures)
        (self.folder / FIGURES).write_text(f"[\n{rows}\n]\n", encoding="utf-8")

    def figures(self) -> list[SnapshotFigures]:
        return [SnapshotFigures(**row) for row in read_json(self.folder / FIGURES, list)]
