"""Dropout on a text in both modes."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from gpt.experiments.dropout import dropout_effect
from gpt.model import GPT

TEXT = [5, 1, 60, 8, 8, 30, 2]


def test_two_passes_differ_in_training_mode_and_are_the_models_own_in_evaluation_mode(model: GPT) -> None:
    effect, state = dropout_effect(model, TEXT, p=0.5), torch.get_rng_state()
    logits = model(torch.tensor([TEXT]))[0, -1]
    for row in effect.evaluation:
        assert_close(row, logits, atol=1e-5, rtol=0)
    assert torch.equal(*effect.evaluation)
    assert (effect.training[0] - effect.training[1]).abs().max() > 1e-3
    assert torch.equal(dropout_effect(model, TEXT, p=0.5).training, effect.training)
    assert not torch.equal(dropout_effect(model, TEXT, p=0.5, seed=1).training, effect.training)
    assert torch.equal(torch.get_rng_state(), state)
    assert not model.training


def test_what_is_not_dropped_is_divided_by_1_minus_p(model: GPT) -> None:
    p = 0.1
    effects = [dropout_effect(model, TEXT, p=p, seed=seed).parts for seed in range(4)]
    for parts in zip(*effects, strict=True):
        before, after = (torch.cat([getattr(part, name) for part in parts]) for name in ("before", "after"))
        kept = after != 0
        assert_close(after[kept], before[kept] / (1 - p))
        n = int((before != 0).sum())  # outside a window, attention weights are 0 even without dropout
        share = sum(part.n_dropped for part in parts) / n
        assert share == pytest.approx(p, abs=4 * (p * (1 - p) / n) ** 0.5), parts[0].part
