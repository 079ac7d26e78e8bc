"""The update step equals plain torch, is reproducible, and can be resumed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from gpt.training.process import Process
from gpt.training.recipe import Recipe
from gpt.training.tasks import TASKS, TaskDataset
from gpt.training.trainer import Batch, Trainer

RECIPE = Recipe(
    vocab_size=261, block_size=16, n_layer=1, n_head=2, n_embd=16, steps=20, batch_size=4, warmup=0, dropout=0.1
)
CPU = torch.device("cpu")
BATCH = Batch.of_rows(np.random.default_rng(4).integers(0, 261, (4, 17), dtype=np.int32))


def make_trainer(recipe: Recipe = RECIPE, process: Process | None = None) -> Trainer:
    return Trainer(recipe.new_model(261), recipe, process)


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


@pytest.mark.parametrize("factor", [1.0, 0.7])
def test_updates_are_those_of_plain_torch(factor: float) -> None:
    dataset = TaskDataset(TASKS["add"])  # with ignored targets
    recipe = replace(RECIPE, block_size=9, dropout=0, optimizer="adamw", adamw_weight_decay=0.1, clip=0.5, warmup=2)
    model, same = (recipe.new_model(dataset.vocabulary.n_vocab) for _ in range(2))
    trainer = Trainer(same, recipe)
    groups = [
        {"params": [p for p in model.parameters() if p.dim() == dim], "weight_decay": decay}
        for dim, decay in ((2, 0.1), (1, 0.0))
    ]
    optimizer = torch.optim.AdamW(groups, lr=recipe.adamw_lr, betas=(0.9, 0.95))
    for step in range(3):
        batch = dataset.batch(step, 8)
        for group in optimizer.param_groups:
            group["lr"] = recipe.adamw_lr * recipe.lr_factor(step) * factor
        loss = torch.nn.functional.cross_entropy(model(batch.idx).flatten(0, 1), batch.targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        assert trainer.learning_rate(factor) == pytest.approx(optimizer.param_groups[0]["lr"])
        assert trainer.update(batch, factor) == pytest.approx(loss.item(), rel=1e-6)
    assert_close(trainer.model.h[0].mlp.c_fc.weight, model.h[0].mlp.c_fc.weight)


def test_training_on_the_same_rows_lowers_their_loss() -> None:
    trainer = make_trainer()
    before = trainer.loss(BATCH)
    losses = [trainer.update(BATCH) for _ in range(10)]
    assert before == pytest.approx(np.log(261), abs=0.1)  # the loss of a uniform distribution
    assert losses[-1] < losses[0] - 0.5
    assert trainer.loss(BATCH) < losses[0] - 0.5
    assert (trainer.step, trainer.n_tokens, trainer.losses) == (10, 10 * 4 * 16, losses)


def test_state_and_load_continue_bit_for_bit_dropout_included() -> None:
    first, second, whole = (make_trainer() for _ in range(3))
    for step in range(6):
        whole.update(BATCH)
        (first if step < 3 else second).update(BATCH)
        if step == 2:
            first.best = 1.5
            torch.rand(5)  # other code may draw random numbers in between
            second.load(first.state())
    assert (second.step, second.best, second.losses) == (6, 1.5, whole.losses)
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(second)[name]), name


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_an_update_leaves_torchs_global_generator_as_it_is_and_the_model_in_evaluation_mode(dropout: float) -> None:
    state = torch.get_rng_state()
    trainer = make_trainer(replace(RECIPE, dropout=dropout))
    assert (trainer.update(BATCH) == make_trainer(replace(RECIPE, dropout=0)).update(BATCH)) is not bool(dropout)
    assert torch.equal(torch.get_rng_state(), state)
    assert not trainer.model.training


def test_trainings_with_dropout_in_threads_are_those_alone() -> None:
    def losses(seed: int) -> list[float]:
        trainer = make_trainer(replace(RECIPE, seed=seed, dropout=0.5))
        return [trainer.update(BATCH) for _ in range(8)]

    with ThreadPoolExecutor() as threads:
        together = list(threads.map(losses, range(4)))
    assert together == [losses(seed) for seed in range(4)]


def test_a_batch_that_does_not_divide_by_the_processes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"batch_size \(4\) must be divisible by the number of processes \(3\)"):
        make_trainer(process=Process(CPU, world_size=3))


def test_an_infinite_loss_is_refused_before_the_weights_change() -> None:
    trainer = make_trainer()
    trainer.update(BATCH)
    with torch.no_grad():
        trainer.model.ln_f.weight[0] = float("nan")
    before = weights(trainer)
    for measure in (trainer.update, trainer.loss):
        with pytest.raises(ValueError, match=r"infinite at step 1: try lower rates than adamw_lr 0\.004, muon_lr 0"):
            measure(BATCH)
    assert trainer.step == 1
    for name, value in weights(trainer).items():
        assert torch.equal(value.nan_to_num(7.0), before[name].nan_to_num(7.0)), name


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 70_000.0])  # the largest half-precision number is 65,504
def test_weights_beyond_half_precision_are_refused_by_state(value: float) -> None:
    trainer = make_trainer()
    trainer.state()
    with torch.no_grad():
        trainer.model.wte.weight[3, 2] = value
    with pytest.raises(ValueError, match="became infinite at step 0"):
        trainer.state()
