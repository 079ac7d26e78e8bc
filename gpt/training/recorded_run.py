"""A finished training run with saved snapshots, which provides the same data as a live run."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch

from gpt.model import meta_model
from gpt.models.loading import LoadedModel
from gpt.tokenizer import Vocabulary
from gpt.trace import Trace
from gpt.training.data import Sample
from gpt.training.live_run import Evaluation, RunProgress
from gpt.training.snapshots import SnapshotFigures, Snapshots

ASSETS = Path(__file__).parent.parent / "assets" / "training"
EXAMPLE = 2 * " cold spoon bird door blue tree king"
APPEARED = 0.5  # minimum induction score for a head to count as copying


class RecordedExample(NamedTuple):
    """The text on which attention is shown; see `gpt.training.data.TextDataset`."""

    vocabulary: Vocabulary
    example: list[int]
    query: int


class RecordedRun:
    """The snapshots in a folder, with each snapshot's attention on a text with repeated words."""

    def __init__(self, folder: Path) -> None:
        self.snapshots = Snapshots(folder)
        self.config, tokenizer = self.snapshots.config, self.snapshots.tokenizer
        self.figures: dict[int, SnapshotFigures] = {each.step: each for each in self.snapshots.figures()}
        start = [] if tokenizer.eot_id is None else [tokenizer.eot_id]
        ids = [*start, *tokenizer.encode(EXAMPLE)][: self.config.block_size]
        first_again = next((at for at, token_id in enumerate(ids) if token_id in ids[:at]), len(ids) - 2)
        self.dataset = RecordedExample(tokenizer, ids, first_again)
        evaluations = tuple(self._evaluation(step) for step in self.snapshots.steps if step in self.figures)
        last = evaluations[-1].step
        self.n_parameters = meta_model(self.config).n_parameters
        self.progress = RunProgress("finished", last, last, evaluations)

    @torch.inference_mode()
    def _evaluation(self, step: int) -> Evaluation:
        trace, figures = Trace(), self.figures[step]
        self.snapshots.model(step).hidden_states(torch.tensor([self.dataset.example]), trace=trace)
        weights = torch.stack([layer.attn_weights[0] for layer in trace.layers])  # (n_layer, n_head, T, T)
        samples = (Sample(figures.prompt, figures.sample),)
        return Evaluation(step, figures.loss, None, samples, weights.half().numpy())

    def loaded_at(self, evaluation: Evaluation) -> LoadedModel:
        model = self.snapshots.model(evaluation.step)
        return LoadedModel("recorded", model, self.dataset.vocabulary, torch.device("cpu"), "fp32", "recorded")

    def appearance(self, layer: int, head: int) -> tuple[int, int] | None:
        """Return the steps before and after a head's induction score first reaches APPEARED, or None."""
        before = 0
        for step, figures in self.figures.items():
            if figures.induction[layer][head] >= APPEARED:
                return before, step
            before = step
        return None


@lru_cache(maxsize=1)
def bundled_recording() -> RecordedRun:
    """Return the recording in the assets."""
    return RecordedRun(ASSETS)


@lru_cache(maxsize=1)
def recorded_texts() -> tuple[tuple[int, str, float], ...]:
    """Return (step, text, validation loss) for each snapshot of the bundled recording."""
    return tuple((each.step, each.prompt + each.sample, each.loss) for each in Snapshots(ASSETS).figures())
