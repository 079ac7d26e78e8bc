"""One update after the other: the same as torch's own, and off the way of everybody else."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from gpt.model import GPT
from gpt.training.learner import Learner
from gpt.training.recipe import Recipe
from gpt.training.tasks import TASKS, TaskMaterial

TINY = Recipe(block_size=9, n_layer=2, n_head=2, n_embd=16, steps=12, batch_size=8, warmup=2)


def test_updates_are_those_of_plain_torch() -> None:
    recipe = Recipe(**{**vars(TINY), "optimizer": "adamw", "adamw_weight_decay": 0.1, "clip": 0.5})
    material = TaskMaterial(TASKS["add"])
    learner = Learner(recipe, material.vocabulary.n_vocab)
    torch.manual_seed(recipe.seed)
    model = GPT(learner.model.config)
    groups = [
        {"params": [p for p in model.parameters() if p.dim() == dim], "weight_decay": decay}
        for dim, decay in ((2, 0.1), (1, 0.0))
    ]
    optimizer = torch.optim.AdamW(groups, lr=recipe.adamw_lr, betas=(0.9, 0.95))
    for step in range(3):
        batch = material.batch(step, 8)
        for group in optimizer.param_groups:
            group["lr"] = recipe.adamw_lr * recipe.rate(step) * 0.7
        loss = torch.nn.functional.cross_entropy(model(batch.idx).flatten(0, 1), batch.targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        assert learner.update(batch, 0.7) == pytest.approx(loss.item(), rel=1e-6)
    assert_close(learner.model.h[0].mlp.c_fc.weight, model.h[0].mlp.c_fc.weight)


def test_dropout_is_refused() -> None:
    with pytest.raises(ValueError, match=r"dropout must be 0 here, not 0\.1"):
        Learner(Recipe(**{**vars(TINY), "dropout": 0.1}), 10)


def test_a_rotary_learner_has_no_table_of_positions() -> None:
    learner = Learner(TINY, 10, position="rotary")
    assert (learner.model.wpe, learner.model.config.position) == (None, "rotary")
    material = TaskMaterial(TASKS["add"])
    learner = Learner(TINY, material.vocabulary.n_vocab, position="rotary")
    losses = [learner.update(material.batch(0, 8)) for _ in range(8)]
    assert losses[-1] < losses[0]
