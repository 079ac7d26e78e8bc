"""Recipes, optimizers, and the update step, compared with plain torch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from gpt.model import GPT
from gpt.training.data import TASKS, TaskDataset
from gpt.training.recipe import RECIPE_PRESETS, Recipe
from gpt.training.trainer import Batch, Muon, Process, Trainer, make_optimizers

SMALL = Recipe(n_layer=2, n_head=2, n_embd=16, block_size=16, vocab_size=300, steps=100, warmup=10, decay_from=0.5)


def test_lr_factor_is_a_linear_warm_up_then_constant_then_a_linear_decay_to_zero() -> None:
    assert [SMALL.lr_factor(step) for step in (0, 4, 9, 10, 50)] == pytest.approx([0.1, 0.5, 1.0, 1.0, 1.0])
    assert [SMALL.lr_factor(step) for step in (51, 60, 75, 99)] == pytest.approx([0.98, 0.8, 0.5, 0.02])
    assert replace(SMALL, decay_from=1.0).lr_factor(99) == 1.0
    assert replace(SMALL, warmup=0).lr_factor(0) == 1.0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"vocab_size": 256}, "vocab_size must be a number of at least 257, not 256"),
        ({"block_size": 1}, "block_size must be a number of at least 2, not 1"),
        ({"steps": 0}, "steps must be a number of at least 1, not 0"),
        ({"adamw_lr": -0.1}, "adamw_lr must be a number of at least 0, not -0.1"),
        ({"muon_lr": float("nan")}, "muon_lr must be a number of at least 0, not nan"),
        ({"held_back": 1.5}, "held_back must be a number between 0 and 1, not 1.5"),
        ({"optimizer": "sgd"}, "optimizer must be one of muon, adamw, not 'sgd'"),
        ({"precision": "fp16"}, "precision must be one of auto, fp32, bf16, not 'fp16'"),
        ({"n_head": 3}, r"n_embd \(16\) must be divisible by n_head \(3\)"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(SMALL, **changes)


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_every_parameter_has_one_optimizer_and_only_matrices_decay(optimizer: str) -> None:
    model = GPT(SMALL.model_config(300))
    optimizers = make_optimizers(model, replace(SMALL, optimizer=optimizer))
    groups = [group for each in optimizers for group in each.param_groups]
    parameters = [parameter for group in groups for parameter in group["params"]]
    assert sorted(map(id, parameters)) == sorted(map(id, model.parameters()))
    for group in groups:
        assert {parameter.dim() == 2 for parameter in group["params"]} == {group["weight_decay"] > 0}


@pytest.mark.parametrize(
    ("name", "millions", "rows"), [("shakespeare", "10.65", (64, 256)), ("shakespeare-cpu", "0.80", (12, 64))]
)
def test_the_shakespeare_presets_are_nanogpts(name: str, millions: str, rows: tuple[int, int]) -> None:
    recipe = RECIPE_PRESETS[name]
    model = GPT(recipe.model_config(65))
    without_positions = sum(p.numel() for p in model.parameters()) - model.wpe.weight.numel()
    assert f"{without_positions / 1e6:.2f}" == millions  # "number of parameters" as printed by nanoGPT
    assert (recipe.batch_size, recipe.block_size) == rows
    (adamw,) = make_optimizers(model, recipe)
    assert [group["weight_decay"] for group in adamw.param_groups] == [0.1, 0.0]
    assert {(group["lr"], group["betas"]) for group in adamw.param_groups} == {(1e-3, (0.9, 0.99))}
    assert [recipe.lr_factor(step) for step in (0, 99)] == [0.01, 1.0]


def test_a_recipe_of_llamas_shape_is_found_again_from_its_model() -> None:
    recipe = replace(SMALL, architecture="llama", bias=False, n_kv_head=1)
    config = recipe.model_config(300)
    assert (config.norm, config.gated, config.position, config.kv_heads, config.bias) == (
        "rms",
        True,
        "rotary",
        1,
        False,
    )
    assert Recipe().shaped_like(config).model_config(300) == config
    with pytest.raises(ValueError, match=r"n_head \(2\) must be divisible by n_kv_head \(3\)"):
        replace(recipe, n_kv_head=3)
    with pytest.raises(ValueError, match="qk_norm"):
        Recipe().shaped_like(replace(config, qk_norm=True))


def test_its_updates_are_those_of_torch():
    generator = torch.Generator().manual_seed(0)
    start, target = (torch.randn(12, 30, generator=generator) for _ in range(2))
    ends = []
    for make in (
        lambda weights: Muon(weights, 0.05, 0.1),
        lambda weights: torch.optim.Muon(weights, 0.05, 0.1, adjust_lr_fn="match_rms_adamw"),  # runs in bfloat16
    ):
        weight = torch.nn.Parameter(start.clone())
        optimizer = make([weight])
        for _ in range(5):
            optimizer.zero_grad()
            (weight - target).square().sum().backward()
            optimizer.step()
        ends.append(weight.detach() - start)
    assert (ends[0] - ends[1]).norm() < 0.02 * ends[1].norm()


RECIPE = Recipe(
    vocab_size=261, block_size=16, n_layer=1, n_head=2, n_embd=16, steps=20, batch_size=4, warmup=0, dropout=0.1
)


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
        assert trainer.update(batch, factor) == pytest.approx(loss.item(), rel=1e-6)
    assert_close(trainer.model.h[0].mlp.c_fc.weight, model.h[0].mlp.c_fc.weight)


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
        together = list(threads.map(losses, range(2)))
    assert together == [losses(seed) for seed in range(2)]


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
