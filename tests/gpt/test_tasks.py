"""The examples of the tasks: right, never both trained on and tested, and asked for where they should be."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import torch

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.loading import LoadedModel
from gpt.training.learner import Learner
from gpt.training.recipe import Recipe
from gpt.training.tasks import RECIPE, TASKS, Example, Sample, Task, TaskMaterial, answer, exact_answers, is_unseen

EVERY = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())


def drawn(task: Task, count: int, *, unseen: bool, seed: int = 0) -> list[Example]:
    return list(islice(task.examples(np.random.default_rng(seed), unseen=unseen), count))


def solve(name: str, prompt: str) -> str:
    """Each task, done in the plainest way."""
    if name == "sort":
        return "".join(sorted(prompt.removesuffix(">")))
    if name == "reverse":
        return "".join(reversed(prompt.removesuffix(">")))
    if name == "add":
        return str(sum(map(int, prompt.removesuffix("=").split("+"))))
    before = prompt.rstrip("abcdefghijklmnopqrstuvwxyz").rstrip(".")
    return before[before.index(prompt[-1]) + 1 :][:3]


@EVERY
def test_every_answer_is_right_and_ends_its_line(task: Task) -> None:
    for example in drawn(task, 300, unseen=False) + drawn(task, 50, unseen=True):
        assert example.answer == solve(task.name, example.prompt) + "\n"
        assert len(example.prompt + example.answer) <= task.width
        assert set(example.prompt + example.answer) <= {"\n", *task.characters}


@EVERY
def test_no_example_is_both_trained_on_and_unseen(task: Task) -> None:
    training = {example.prompt for seed in range(20) for example in drawn(task, 200, unseen=False, seed=seed)}
    unseen = {example.prompt for seed in range(5) for example in drawn(task, 200, unseen=True, seed=seed)}
    assert len(training) > 3000
    assert not training & unseen


@EVERY
def test_a_tenth_is_unseen(task: Task) -> None:
    rng = np.random.default_rng(0)
    assert np.mean([is_unseen(task.draw(rng)) for _ in range(3000)]) == pytest.approx(0.1, abs=0.03)


def test_a_sum_is_as_unseen_as_the_same_sum_the_other_way_round() -> None:
    rng = np.random.default_rng(0)
    unseen = {}
    for _ in range(6000):
        example = TASKS["add"].draw(rng)
        unseen[example.prompt] = is_unseen(example)
    turned = {prompt: "+".join(reversed(prompt[:-1].split("+"))) + "=" for prompt in unseen}
    both = [prompt for prompt in unseen if turned[prompt] in unseen]
    assert len(both) > 1000
    assert all(unseen[prompt] == unseen[turned[prompt]] for prompt in both)


def test_the_copied_letter_has_one_place_and_the_gap_varies() -> None:
    gaps = set()
    for example in drawn(TASKS["copy"], 200, unseen=False):
        before, gap, cue = example.prompt[:8], example.prompt[8:-1], example.prompt[-1]
        assert len(set(before)) == 8
        assert set(gap) == {"."}
        assert before.count(cue) == 1
        gaps.add(len(gap))
    assert gaps == set(range(1, 9))


@EVERY
def test_a_batch_spells_the_examples_and_asks_for_the_answers_alone(task: Task) -> None:
    material = TaskMaterial(task)
    batch = material.batch(3, 16)
    assert batch.idx.shape == batch.targets.shape == (16, material.block_size)
    for row, targets in zip(batch.idx.tolist(), batch.targets.tolist(), strict=True):
        asked = [target for target in targets if target != -100]
        wanted = material.vocabulary.decode(asked)
        start = targets.index(asked[0])
        prompt = material.vocabulary.decode(row[: start + 1])
        assert wanted == solve(task.name, prompt) + "\n"
        assert row[start + 1 :][: len(asked) - 1] == asked[:-1]  # what was asked for is read next


def test_batches_repeat_with_the_seed_and_differ_between_steps() -> None:
    def batch(seed: int, step: int) -> torch.Tensor:
        return TaskMaterial(TASKS["sort"], seed).batch(step, 8).idx

    assert torch.equal(batch(1, 5), batch(1, 5))
    assert not torch.equal(batch(1, 5), batch(1, 6))
    assert not torch.equal(batch(1, 5), batch(2, 5))


def test_exact_answers_are_those_that_greedy_writing_gives() -> None:
    """A model that has half learned to sort three letters is right on some examples and wrong on others."""

    def draw(rng: np.random.Generator) -> Example:
        letters = "".join("abcd"[i] for i in rng.integers(4, size=3))
        return Example(f"{letters}>", "".join(sorted(letters)) + "\n", letters)

    material = TaskMaterial(Task("tiny", "abcd>", 8, draw))
    recipe = Recipe(block_size=7, n_layer=1, n_head=2, n_embd=32, steps=60, muon_lr=0.01, adamw_lr=0.005, warmup=5)
    learner = Learner(recipe, material.vocabulary.n_vocab)
    for step in range(12):
        learner.update(material.batch(step, 32))
    loaded = LoadedModel("tiny", learner.model, material.vocabulary, torch.device("cpu"), "fp32")
    written = [answer(loaded, e.prompt, len(e.answer)) == e.answer for e in material.tested[:60]]
    assert 0 < sum(written) < 60
    assert exact_answers(learner.model, material.encode(material.tested[:60])) == sum(written) / 60
    samples = material.samples(loaded)
    assert [sample.right for sample in samples] == written[:4]
    assert [sample.prompt for sample in samples] == [example.prompt for example in material.tested[:4]]


def test_a_row_counts_only_if_all_of_it_is_right() -> None:
    material = TaskMaterial(TASKS["add"])
    batch = material.encode([Example("11+11=", "22\n", "11+11"), Example("22+22=", "44\n", "22+22")])

    class Oracle(GPT):
        def forward(self, idx: torch.Tensor) -> torch.Tensor:
            right = batch.targets.clamp(min=0)
            right[1, -1 - batch.targets[1].flip(0).ne(-100).int().argmax()] = 0  # its last asked token
            return torch.nn.functional.one_hot(right, material.vocabulary.n_vocab).float()

    config = GPTConfig(vocab_size=material.vocabulary.n_vocab, block_size=9, n_layer=1, n_head=1, n_embd=2)
    last = material.vocabulary.encode("\n")[0]
    assert exact_answers(Oracle(config), batch) == (0.5 if last != 0 else 1.0)


def test_what_has_no_right_answer_is_neither_right_nor_wrong() -> None:
    assert Sample("a", "b").right is None
    assert Sample("a", "b", "b").right
    assert Sample("a", "b", "c").right is False


def test_the_material_of_every_task_fits_its_model() -> None:
    for task in TASKS.values():
        material = TaskMaterial(task)
        assert isinstance(material.vocabulary, Characters)
        assert len(material.watched) <= material.block_size == task.width - 1
        assert all(is_unseen(example) for example in material.tested)
    assert RECIPE.dropout == 0


def test_a_tiny_model_learns_a_task_it_has_not_seen_the_tests_of() -> None:
    """Reversing four letters of six takes a fraction of what the tasks of the page take."""

    def draw(rng: np.random.Generator) -> Example:
        letters = "".join("abcdef"[i] for i in rng.integers(6, size=4))
        return Example(f"{letters}>", letters[::-1] + "\n", letters)

    material = TaskMaterial(Task("reverse four", "abcdef>", 10, draw))
    learner = Learner(
        Recipe(block_size=9, n_layer=2, n_head=2, n_embd=32, steps=100, muon_lr=0.02, adamw_lr=0.01, warmup=10),
        material.vocabulary.n_vocab,
    )
    for step in range(100):
        learner.update(material.batch(step, 32))
    assert material.accuracy(learner.model) > 0.9
