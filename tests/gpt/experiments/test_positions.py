"""The effect of masks and of positions."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close
from transformers.models.distilbert.modeling_distilbert import create_sinusoidal_embeddings

from gpt.experiments.masks import FLOOR, future_leak, padding_effect, train_on_random_text, unmasked_logits
from gpt.experiments.positions import inside_and_beyond, rotary_closeness, sinusoidal_positions, train_extrapolation
from gpt.model import GPT
from tests.gpt.family_configs import FAMILIES, randomized

TEXT = [5, 1, 60, 8, 8, 30, 2]


def test_with_the_causal_mask_a_token_changes_nothing_before_it(model: GPT) -> None:
    with_mask, without_mask = future_leak(model, TEXT, 4, 11)
    assert with_mask[:4].max() < 1e-6
    assert with_mask[4:].min() > 1e-3
    assert without_mask.min() > 1e-3  # every prediction changes


def test_without_the_mask_a_window_hides_earlier_tokens_only() -> None:
    model = randomized(GPT(replace(FAMILIES["gemma3"], n_layer=1, full_layers=(), window=2)))
    before, after = torch.tensor([TEXT]), torch.tensor([[60, *TEXT[1:-1], 60]])
    with torch.inference_mode():
        change = (unmasked_logits(model, after) - unmasked_logits(model, before))[0].abs().amax(dim=-1)
    assert (change > 1e-4).all()  # every position sees the last token
    after[0, -1] = TEXT[-1]
    with torch.inference_mode():
        change = (unmasked_logits(model, after) - unmasked_logits(model, before))[0].abs().amax(dim=-1)
    assert (change[:2] > 1e-4).all()
    assert (change[2:] < 1e-5).all()  # the first token is outside their windows


def test_padding_needs_its_mask_on_the_left_only(model: GPT) -> None:
    with_mask, without_mask = padding_effect(model, TEXT, 4)
    assert with_mask.shape == without_mask.shape == (len(TEXT),)
    assert with_mask.max() < 1e-5
    assert without_mask.min() > 1e-3
    assert all(side.max() < 1e-5 for side in padding_effect(model, TEXT, 4, side="right"))


@pytest.mark.thorough
def test_random_text_cannot_be_learned_but_without_the_mask_it_can_be_copied() -> None:
    *_, (with_mask, without_mask) = train_on_random_text(steps=60)
    assert len(with_mask) == len(without_mask) == 60
    assert min(with_mask) > FLOOR - 0.05
    assert without_mask[-1] < FLOOR / 2


@pytest.mark.thorough
def test_learned_positions_fail_beyond_the_trained_length_and_rotary_ones_less() -> None:
    [(_, losses)] = train_extrapolation(trained_length=16, tested_length=32, steps=100, tests=1)
    assert [len(values) for values in losses.values()] == [32, 32]
    learned, rotary = (inside_and_beyond(losses[position], 16) for position in ("learned", "rotary"))
    assert learned[0] < 1.0 < learned[1]  # uniform: ln(8) = 2.08; floor: 0.47
    assert rotary[0] < 1.0
    assert rotary[1] < learned[1] - 0.5


def test_sinusoidal_positions_are_those_of_transformers_and_as_close_as_rotary_ones() -> None:
    expected = torch.empty(50, 16)
    create_sinusoidal_embeddings(50, 16, expected)
    positions = sinusoidal_positions(50, 16)
    assert_close(positions, expected, atol=1e-5, rtol=0)
    closeness = (positions[30:] @ positions[30] / 8).double()  # 8 pairs of length 1
    assert_close(closeness, rotary_closeness(16, torch.arange(20)), atol=1e-5, rtol=0)


def test_losses_before_the_end_do_not_change_those_at_the_end() -> None:
    options = {"trained_length": 9, "tested_length": 12, "steps": 4}
    first, last = train_extrapolation(tests=2, **options)
    assert (first[0], last[0]) == (2, 4)
    assert [last] == list(train_extrapolation(tests=1, **options))
