"""The tasks' examples, their split and their targets."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import torch

from gpt.models.loading import LoadedModel
from gpt.training.data import TASKS, Example, Task, TaskDataset
from gpt.training.evaluation import sample
from gpt.training.recipe import Recipe
from gpt.training.trainer import Trainer

EVERY_TASK = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())


def draw_examples(task: Task, count: int, *, test: bool, seed: int = 0) -> list[Example]:
    return list(islice(task.examples(np.random.default_rng(seed), test=test), count))


def solve(name: str, prompt: str) -> str:
    """Compute the answer independently."""
    if name == "sort":
        return "".join(sorted(prompt.removesuffix(">")))
    if name == "reverse":
        return "".join(reversed(prompt.removesuffix(">")))
    if name == "add":
        return str(sum(map(int, prompt.removesuffix("=").split("+"))))
    before = prompt.rstrip("abcdefghijklmnopqrstuvwxyz").rstrip(".")
    return before[before.index(prompt[-1]) + 1 :][:3]


@EVERY_TASK
def test_every_answer_is_correct_and_ends_with_a_line_feed(task: Task) -> None:
    for example in draw_examples(task, 300, test=False) + draw_examples(task, 50, test=True):
        assert example.answer == solve(task.name, example.prompt) + "\n"
        assert len(example.prompt + example.answer) <= task.width
        assert set(example.prompt + example.answer) <= {"\n", *task.characters}


@EVERY_TASK
def test_no_example_is_both_trained_on_and_tested(task: Task) -> None:
    training = {example.prompt for example in draw_examples(task, 1000, test=False)}
    tested = {example.prompt for example in draw_examples(task, 300, test=True)}
    assert len(training) > 800
    assert not training & tested


@EVERY_TASK
def test_a_batch_encodes_the_examples_and_only_answers_are_targets(task: Task) -> None:
    dataset = TaskDataset(task)
    batch = dataset.batch(3, 16)
    assert batch.idx.shape == batch.targets.shape == (16, dataset.block_size)
    for row, targets in zip(batch.idx.tolist(), batch.targets.tolist(), strict=True):
        answer_ids = [target for target in targets if target != -100]
        start = targets.index(answer_ids[0])
        prompt = dataset.vocabulary.decode(row[: start + 1])
        assert dataset.vocabulary.decode(answer_ids) == solve(task.name, prompt) + "\n"
        assert row[start + 1 :][: len(answer_ids) - 1] == answer_ids[:-1]  # each target is the next input


def learn(dataset: TaskDataset, recipe: Recipe, steps: int) -> LoadedModel:
    """Train a model for `steps` updates of 32 examples."""
    trainer = Trainer(recipe.new_model(dataset.vocabulary.n_vocab), recipe)
    for step in range(steps):
        trainer.update(dataset.batch(step, 32))
    return LoadedModel("tiny", trainer.model, dataset.vocabulary, torch.device("cpu"), "fp32")


def test_the_accuracy_equals_that_of_greedy_decoding() -> None:
    """A model that is still learning to sort three letters solves only some of the examples."""

    def draw(rng: np.random.Generator) -> Example:
        letters = "".join("abcd"[i] for i in rng.integers(4, size=3))
        return Example(f"{letters}>", "".join(sorted(letters)) + "\n", letters)

    dataset = TaskDataset(Task("tiny", "abcd>", 8, draw))
    recipe = Recipe(block_size=7, n_layer=1, n_head=2, n_embd=32, steps=60, muon_lr=0.01, adamw_lr=0.005, warmup=5)
    loaded, examples = learn(dataset, recipe, 12), dataset.test_examples[:60]
    right = [
        sample(loaded, each.prompt, max_new_tokens=len(each.answer), temperature=0) == each.answer for each in examples
    ]
    assert 0 < sum(right) < 60
    dataset.validation = dataset.encode(examples)
    assert dataset.accuracy(loaded.model) == sum(right) / 60
    samples = dataset.samples(loaded)
    assert [each.correct for each in samples] == right[:4]
    assert [each.prompt for each in samples] == [example.prompt for example in examples[:4]]
