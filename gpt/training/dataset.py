"""The interface of the datasets of live runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gpt.model import GPT
from gpt.models.loading import LoadedModel
from gpt.tokenizer import Vocabulary
from gpt.training.trainer import Batch


@dataclass(frozen=True)
class Sample:
    """The continuation of a prompt by a model, and the correct one; None if there is none."""

    prompt: str
    text: str
    expected: str | None = None

    @property
    def correct(self) -> bool | None:
        """Whether every character is correct."""
        return None if self.expected is None else self.text == self.expected


class Dataset(Protocol):
    """Examples of `gpt.training.tasks.TaskDataset` or `gpt.training.text_dataset.TextDataset`.

    validation: examples that are not trained on. example: ids of one of them, whose attention is recorded.
    query: the position of `example` that predicts the first token of the answer. start: a prompt to try.
    """

    name: str
    vocabulary: Vocabulary
    block_size: int
    validation: Batch
    example: list[int]
    query: int
    start: str

    def batch(self, step: int, size: int) -> Batch:
        """Return the training examples of one update."""

    def accuracy(self, model: GPT) -> float | None:
        """Share of correct answers on the validation examples, 0 to 1; None if there are none to compare with."""

    def samples(self, loaded: LoadedModel) -> tuple[Sample, ...]:
        """Return the model's continuations of a few prompts."""
