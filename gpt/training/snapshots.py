"""Records of a training run, and its snapshots: small copies of the weights after steps spaced on a log scale.

A folder contains config.json (the model's configuration), the vocabulary, one <step>.safetensors per snapshot,
figures.json (measurements for each snapshot) and README.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from gpt.analysis.tracing import trace_text
from gpt.config import GPTConfig
from gpt.model import GPT, meta_model
from gpt.models.checkpoints.files import CONFIG
from gpt.models.checkpoints.untrusted import open_safetensors, read_json
from gpt.models.checkpoints.vocabularies import find_vocabulary, write_vocabulary
from gpt.models.loading import LoadedModel, pack_tensors, unpack_tensors
from gpt.tokenizer import Vocabulary
from gpt.training.data import Sample

FIGURES = "figures.json"
FIRST_SHARE = 1 / 256  # fraction of the updates made before the first snapshot of trained weights
ASSETS = Path(__file__).parent.parent / "assets" / "training"
EXAMPLE = 2 * " cold spoon bird door blue tree king"
APPEARED = 0.5  # minimum induction score for a head to count as copying
State = Literal["waiting", "training", "paused", "finished", "cancelled", "diverged", "crashed"]
ENDED: tuple[State, ...] = ("finished", "cancelled", "diverged", "crashed")


def snapshot_steps(steps: int, n: int) -> tuple[int, ...]:
    """Return at most `n` steps from 0 to `steps`, on a log scale after 0. Both ends are included if n is at least 2."""
    if n < 2:
        return (0,)[:n]
    after = np.geomspace(steps, max(1, steps * FIRST_SHARE), n - 1).round().astype(int)
    return (0, *sorted(set(after.tolist())))


def pack_weights(model: GPT) -> dict[str, Tensor]:
    """Return a compact copy of the weights: matrices in int8 with a float16 scale per row, vectors in float16."""
    state = {name: parameter.detach().float().cpu() for name, parameter in model.named_parameters()}  # no tied head
    return pack_tensors(state, tuple(name for name, value in state.items() if value.dim() >= 2))


def unpack_model(config: GPTConfig, packed: Mapping[str, Tensor]) -> GPT:
    """Build the model from the result of `pack_weights`, in float32 and evaluation mode."""
    model = meta_model(config)
    model.load_state_dict(unpack_tensors(packed), strict=False, assign=True)
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


@dataclass(frozen=True)
class Evaluation:
    """The model's results after `step` updates, on examples that are not used for training.

    attn_weights: (n_layer, n_head, T, T) float16, on the dataset's example. weights: the snapshot; see
    `gpt.training.snapshots.pack_weights`.
    """

    step: int
    val_loss: float
    accuracy: float | None
    samples: tuple[Sample, ...]
    attn_weights: np.ndarray
    weights: Mapping[str, Tensor] = field(default_factory=dict, repr=False)

    @cached_property
    def n_bytes(self) -> int:
        return self.attn_weights.nbytes + sum(tensor.nbytes for tensor in self.weights.values())


@dataclass(frozen=True)
class RunProgress:
    """Progress of a run. A run that reaches its time limit is "finished" before its last step.

    steps: number of planned updates. losses, rates: the loss before each update, in nats, and its learning rate.
    seconds: time since the start, including pauses. paused_seconds: duration of the pauses that have ended.
    queue_position: 1 for the next run to start, 0 if the run is not queued.
    """

    state: State
    steps: int
    evaluations: tuple[Evaluation, ...] = ()
    losses: tuple[float, ...] = ()
    rates: tuple[float, ...] = ()
    seconds: float = 0.0
    paused_seconds: float = 0.0
    queue_position: int = 0

    @property
    def step(self) -> int:
        """Number of updates so far. A recorded run lists no losses."""
        return len(self.losses)

    @property
    def ended(self) -> bool:
        return self.state in ENDED


def attention_on(model: GPT, ids: list[int]) -> np.ndarray:
    """Return the attention weights of all heads on a text: (n_layer, n_head, T, T) float16."""
    layers = trace_text(model, ids, only=("attn_weights",)).layers
    return torch.stack([layer.attn_weights[0] for layer in layers]).half().cpu().numpy()


class RecordedExample(NamedTuple):
    """The text on which attention is shown; see `gpt.training.data.TextDataset`."""

    vocabulary: Vocabulary
    example: list[int]
    query: int


class RecordedRun:
    """A folder of snapshots, which provides the same data as a live run: attention is on a text with repeated words."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps = tuple(sorted(int(path.stem) for path in folder.glob("*.safetensors") if path.stem.isdigit()))
        self.config = GPTConfig(**read_json(folder / CONFIG, dict))
        self.n_parameters = meta_model(self.config).n_parameters

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return find_vocabulary(self.folder, self.config.vocab_size)

    def model(self, step: int) -> GPT:
        return unpack_model(self.config, open_safetensors(self.folder / f"{step}.safetensors"))

    @cached_property
    def figures(self) -> dict[int, SnapshotFigures]:
        return {row["step"]: SnapshotFigures(**row) for row in read_json(self.folder / FIGURES, list)}

    @cached_property
    def dataset(self) -> RecordedExample:
        start = [] if self.vocabulary.eot_id is None else [self.vocabulary.eot_id]
        ids = [*start, *self.vocabulary.encode(EXAMPLE)][: self.config.block_size]
        first_again = next((at for at, token_id in enumerate(ids) if token_id in ids[:at]), len(ids) - 2)
        return RecordedExample(self.vocabulary, ids, first_again)

    @cached_property
    def progress(self) -> RunProgress:
        evaluations = tuple(
            Evaluation(
                step=step,
                val_loss=figures.loss,
                accuracy=None,
                samples=(Sample(figures.prompt, figures.sample),),
                attn_weights=attention_on(self.model(step), self.dataset.example),
            )
            for step, figures in self.figures.items()
        )
        return RunProgress("finished", evaluations[-1].step, evaluations)

    def loaded_at(self, evaluation: Evaluation) -> LoadedModel:
        model = self.model(evaluation.step)
        return LoadedModel("recorded", model, self.vocabulary, torch.device("cpu"), "fp32", "recorded")

    def appearance(self, layer: int, head: int) -> tuple[int, int] | None:
        """Return the steps before and after a head's induction score first reaches APPEARED, or None."""
        for before, step in pairwise([0, *self.figures]):
            if self.figures[step].induction[layer][head] >= APPEARED:
                return before, step
        return None


@cache
def bundled_recording() -> RecordedRun:
    return RecordedRun(ASSETS)
