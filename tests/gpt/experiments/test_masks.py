"""The effect of the attention masks."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from gpt.experiments.masks import future_leak, padding_effect, train_on_random_text, unmasked_logits
from gpt.model import GPT
from tests.conftest import randomized
from tests.gpt.family_configs import FAMILIES

TEXT = [5, 1, 60, 8, 8, 30, 2]


def test_with_the_causal_mask_a_token_changes_nothing_before_it(model: GPT) -> None:
    leak = future_leak(model, TEXT, 4, 11)
    assert leak.with_mask[:4].max() < 1e-6
    assert leak.with_mask[4:].min() > 1e-3
    assert leak.without_mask.min() > 1e-3  # every prediction changes


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
    effect, right = padding_effect(model, TEXT, 4), padding_effect(model, TEXT, 4, side="right")
    assert effect.with_mask.shape == effect.without_mask.shape == (len(TEXT),)
    assert effect.with_mask.max() < 1e-5
    assert effect.without_mask.min() > 1e-3
    assert max(right.with_mask.max(), right.without_mask.max()) < 1e-5


@pytest.mark.thorough
def test_random_text_cannot_be_learned_but_without_the_mask_it_can_be_copied() -> None:
    *_, found = train_on_random_text(steps=60)
    assert found.floor == pytest.approx(math.log(8))
    assert len(found.with_mask) == len(found.without_mask) == 60
    assert min(found.with_mask) > found.floor - 0.05
    assert found.without_mask[-1] < found.floor / 2
