"""The interface for datasets used in live runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gpt.model import GPT
from gpt.models.loading import LoadedModel
from gpt.tokenizer import Vocabulary
from gpt.training.trainer import Batch


@dataclass(frozen=True)
class Sample:
    """A prompt, a model's continuation, and the correct continuation, or None for a dataset without correct answers."""

    prompt: str
    text: str
    expected: str | None = None

    @property
    def correct(self) -> bool | None:
        """Whether every character is correct, or None if `expected` is None."""
        return None if self.expected is None else self.text == self.expected


class Dataset(Protocol):
    """Interface of `gpt.training.tasks.TaskDataset` and `gpt.training.text_dataset.TextDataset`.

    validation: examples that are not used for training. example: ids of a validation example, on which attention is
    recorded. query: the position in `example` that predicts the answer's first token. start: a prompt to try.
    """

    name: str
    vocabulary: Vocabulary
    block_size: int
    validation: Batch
    example: list[int]
    query: int
    start: str

    def batch(self, step: int, size: int) -> Batch:
        """Return the training examples for one update."""

    def accuracy(self, model: GPT) -> float | None:
        """Return the fraction of validation examples answered correctly, or None if there are no correct answers."""

    def samples(self, loaded: LoadedModel) -> tuple[Sample, ...]:
        """Return the model's continuations of a few prompts."""
