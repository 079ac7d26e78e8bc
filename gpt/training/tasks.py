"""Small tasks that a tiny GPT learns in a minute: examples without end, and some that it never sees in training."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase

import numpy as np
import torch

from gpt.generate import generate
from gpt.model import GPT
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.loading import LoadedModel
from gpt.sampling import SamplingParams
from gpt.training.learner import Batch
from gpt.training.recipe import Recipe

UNSEEN = 10  # one example in so many is kept from training
TESTED = 500  # unseen examples that the accuracy is measured on


@dataclass(frozen=True)
class Example:
    """What is given and what has to follow; the answer ends its line. key: the same for examples that are too alike."""

    prompt: str
    answer: str
    key: str


@dataclass(frozen=True)
class Sample:
    """What a model wrote after a prompt, and what it should have written; None where nothing is right or wrong."""

    prompt: str
    text: str
    expected: str | None = None

    @property
    def right(self) -> bool | None:
        """Whether every character is as it should be."""
        return None if self.expected is None else self.text == self.expected


@dataclass(frozen=True)
class Task:
    """One kind of examples. draw: makes one at random; width: characters of the longest, its end of line included."""

    name: str
    characters: str
    width: int
    draw: Callable[[np.random.Generator], Example]

    def examples(self, rng: np.random.Generator, *, unseen: bool) -> Iterator[Example]:
        """Examples without end, all of them for training or none of them.

        Which is which is decided by the example's key alone: whatever is unseen stays so in every run.
        """
        while True:
            example = self.draw(rng)
            if is_unseen(example) == unseen:
                yield example


def is_unseen(example: Example) -> bool:
    """True for the examples that are never trained on."""
    return zlib.crc32(example.key.encode()) % UNSEEN == 0


class TaskMaterial:
    """The examples of a task as batches; see `gpt.training.live_run.Material`. The seed decides all of them."""

    def __init__(self, task: Task, seed: int = 0) -> None:
        self.task, self.seed, self.name = task, seed, task.name
        self.vocabulary = Characters(sorted({"\n", *task.characters}))
        self.block_size = task.width - 1
        unseen = task.examples(np.random.default_rng([seed, 1]), unseen=True)
        self.tested = [next(unseen) for _ in range(TESTED)]
        self.held_back = self.encode(self.tested)
        first = self.tested[0]
        self.watched = self.vocabulary.encode(first.prompt + first.answer)[: self.block_size]

    def batch(self, step: int, size: int) -> Batch:
        """The training examples of one update."""
        examples = self.task.examples(np.random.default_rng([self.seed, 0, step]), unseen=False)
        return self.encode([next(examples) for _ in range(size)])

    def encode(self, examples: Sequence[Example]) -> Batch:
        """Rows of one width: only the answers are asked for; what is left after them is filled with ends of line."""
        end_of_line = self.vocabulary.encode("\n")[0]
        ids = torch.full((len(examples), self.task.width), end_of_line)
        asked = torch.zeros_like(ids, dtype=torch.bool)
        for row, example in enumerate(examples):
            known, whole = len(example.prompt), len(example.prompt + example.answer)
            ids[row, :whole] = torch.tensor(self.vocabulary.encode(example.prompt + example.answer))
            asked[row, known:whole] = True
        return Batch(ids[:, :-1], torch.where(asked, ids, -100)[:, 1:])

    def accuracy(self, model: GPT) -> float:
        """Share of the unseen examples whose whole answer is right, from 0 to 1."""
        return exact_answers(model, self.held_back)

    def samples(self, loaded: LoadedModel) -> tuple[Sample, ...]:
        """What the model answers to the first of the unseen examples."""
        return tuple(Sample(e.prompt, answer(loaded, e.prompt, len(e.answer)), e.answer) for e in self.tested[:4])


@torch.inference_mode()
def exact_answers(model: GPT, batch: Batch) -> float:
    """Share of the rows in which every asked token is the one that the model finds most likely.

    That is when greedy writing gives the whole answer: as long as all tokens before were right, it has read the same.
    """
    best = model(batch.idx).argmax(dim=-1)  # (B, T)
    return ((best == batch.targets) | (batch.targets == -100)).all(dim=1).double().mean().item()


def answer(loaded: LoadedModel, prompt: str, length: int) -> str:
    """What a model writes greedily: up to `length` tokens."""
    return "".join(step.text for step in generate(loaded, prompt, SamplingParams(temperature=0), length))


def draw_letters(rng: np.random.Generator, count: int) -> str:
    return "".join(ascii_lowercase[i] for i in rng.integers(len(ascii_lowercase), size=count))


def draw_sort(rng: np.random.Generator) -> Example:
    """qbdazkce>abcdekqz"""
    letters = draw_letters(rng, 8)
    return Example(f"{letters}>", "".join(sorted(letters)) + "\n", letters)


def draw_reverse(rng: np.random.Generator) -> Example:
    """qbdazkce>eckzadbq"""
    letters = draw_letters(rng, 8)
    return Example(f"{letters}>", letters[::-1] + "\n", letters)


def draw_add(rng: np.random.Generator) -> Example:
    """27+58=85, of two digits each; the same two numbers the other way round are the same example."""
    a, b = (int(number) for number in rng.integers(10, 100, size=2))
    return Example(f"{a}+{b}=", f"{a + b}\n", f"{min(a, b)}+{max(a, b)}")


def draw_copy(rng: np.random.Generator) -> Example:
    """qbdazkce....zkce: after a gap one letter comes again, and then what followed it before.

    What has to be looked for is the token after the last place where the present one stood: an induction head
    (Olsson et al., arXiv 2209.11895). No letter stands twice before the gap.
    """
    letters = "".join(ascii_lowercase[i] for i in rng.permutation(len(ascii_lowercase))[:8])
    at, gap = int(rng.integers(5)), int(rng.integers(1, 9))
    return Example(letters + "." * gap + letters[at], letters[at + 1 : at + 4] + "\n", letters)


RECIPE = Recipe(
    n_layer=2,
    n_head=4,
    n_embd=64,
    steps=800,
    batch_size=64,
    muon_lr=0.01,
    adamw_lr=0.005,
    muon_weight_decay=0.1,
    warmup=20,
    decay_from=0.0,
)
TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("sort", ascii_lowercase + ">", 18, draw_sort),
        Task("reverse", ascii_lowercase + ">", 18, draw_reverse),
        Task("add", "0123456789+=", 10, draw_add),
        Task("copy", ascii_lowercase + ".", 21, draw_copy),
    )
}
RECIPES: dict[str, Recipe] = {
    name: replace(RECIPE, steps=steps)
    for name, steps in {"sort": 1000, "reverse": 400, "add": 1000, "copy": 800}.items()
}
