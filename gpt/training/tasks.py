"""Small tasks for tiny models. Examples are random, and a tenth are reserved for testing."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from string import ascii_lowercase

import numpy as np
import torch

from gpt.generate import generate
from gpt.model import GPT
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.loading import LoadedModel
from gpt.sampling import SamplingParams
from gpt.tokenizer import Vocabulary
from gpt.training.data import Sample, TextDataset
from gpt.training.trainer import Batch

TEST_EVERY = 10  # one example in TEST_EVERY is kept for testing
N_TEST_EXAMPLES = 500
N_SAMPLES = 4


@dataclass(frozen=True)
class Example:
    """A prompt and its answer, which ends with a line feed. key: shared by examples kept in the same split."""

    prompt: str
    answer: str
    key: str


@dataclass(frozen=True)
class Task:
    """A distribution over examples. draw: draws one example. width: maximum length, including the line feed."""

    name: str
    characters: str
    width: int
    draw: Callable[[np.random.Generator], Example]

    def examples(self, rng: np.random.Generator, *, test: bool) -> Iterator[Example]:
        """Yield random examples indefinitely: only those whose key is kept for testing, or only the others."""
        while True:
            example = self.draw(rng)
            if (zlib.crc32(example.key.encode()) % TEST_EVERY == 0) == test:
                yield example


class TaskDataset:
    """The examples of a task, with the same attributes as `TextDataset`. The seed determines all examples."""

    def __init__(self, task: Task, seed: int = 0) -> None:
        self.task, self.seed, self.name = task, seed, task.name
        self.vocabulary: Vocabulary = Characters(sorted({"\n", *task.characters}))
        self.block_size = task.width - 1
        examples = task.examples(np.random.default_rng([seed, 1]), test=True)
        self.test_examples = list(islice(examples, N_TEST_EXAMPLES))
        self.validation = self.encode(self.test_examples)
        first = self.test_examples[0]
        self.start, self.query = first.prompt, len(first.prompt) - 1
        self.example = self.vocabulary.encode(first.prompt + first.answer)[: self.block_size]

    def batch(self, step: int, size: int) -> Batch:
        examples = self.task.examples(np.random.default_rng([self.seed, 0, step]), test=False)
        return self.encode(list(islice(examples, size)))

    def encode(self, examples: Sequence[Example]) -> Batch:
        """Encode examples as rows of equal width, padded with line feeds. Only the answers are targets."""
        ids = torch.full((len(examples), self.task.width), self.vocabulary.encode("\n")[0])
        is_answer = torch.zeros_like(ids, dtype=torch.bool)
        for row, example in enumerate(examples):
            text = example.prompt + example.answer
            ids[row, : len(text)] = torch.tensor(self.vocabulary.encode(text))
            is_answer[row, len(example.prompt) : len(text)] = True
        return Batch(ids[:, :-1], torch.where(is_answer, ids, -100)[:, 1:])

    @torch.inference_mode()
    def accuracy(self, model: GPT) -> float:
        """Return the fraction of test examples that greedy decoding answers correctly: every target is most likely."""
        best = model(self.validation.idx).argmax(dim=-1)  # (B, T)
        right = (best == self.validation.targets) | (self.validation.targets == -100)
        return right.all(dim=1).double().mean().item()

    def samples(self, loaded: LoadedModel) -> tuple[Sample, ...]:
        shown = self.test_examples[:N_SAMPLES]
        return tuple(Sample(e.prompt, answer(loaded, e.prompt, len(e.answer)), e.answer) for e in shown)


Dataset = TextDataset | TaskDataset  # what a live run trains on


def answer(loaded: LoadedModel, prompt: str, length: int) -> str:
    """Return the greedy continuation of a prompt, up to `length` tokens."""
    return "".join(step.text for step in generate(loaded, prompt, SamplingParams(temperature=0), length))


def letters_task(solve: Callable[[str], Iterable[str]]) -> Callable[[np.random.Generator], Example]:
    """Return a function that draws eight letters and the same letters in another order, like "qbdazkce>abcdekqz"."""

    def draw(rng: np.random.Generator) -> Example:
        letters = "".join(ascii_lowercase[i] for i in rng.integers(len(ascii_lowercase), size=8))
        return Example(f"{letters}>", "".join(solve(letters)) + "\n", letters)

    return draw


def draw_add(rng: np.random.Generator) -> Example:
    """Return a sum of two-digit numbers: "27+58=85"; "58+27=85" has the same key."""
    a, b = (int(number) for number in rng.integers(10, 100, size=2))
    return Example(f"{a}+{b}=", f"{a + b}\n", f"{min(a, b)}+{max(a, b)}")


def draw_copy(rng: np.random.Generator) -> Example:
    """Return letters, a gap, and one of the letters with the letters that followed it: "qbdazkce....zkce".

    An induction head solves this: it attends to the token after the previous occurrence of the current one (Olsson
    et al., arXiv 2209.11895). No letter occurs twice before the gap.
    """
    letters = "".join(ascii_lowercase[i] for i in rng.permutation(len(ascii_lowercase))[:8])
    at, gap = int(rng.integers(5)), int(rng.integers(1, 9))
    return Example(letters + "." * gap + letters[at], letters[at + 1 : at + 4] + "\n", letters)


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("sort", ascii_lowercase + ">", 18, letters_task(sorted)),
        Task("reverse", ascii_lowercase + ">", 18, letters_task(reversed)),
        Task("add", "0123456789+=", 10, draw_add),
        Task("copy", ascii_lowercase + ".", 21, draw_copy),
    )
}
