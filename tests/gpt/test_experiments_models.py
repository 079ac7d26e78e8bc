"""Masks, first weights, the shared matrix and positions: what a model would be without them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from gpt.config import GPTConfig
from gpt.experiments import (
    extrapolation,
    first_prediction,
    future_leak,
    learn_chance,
    model_norms,
    padding_effect,
    residual_norms,
    rotary_closeness,
    shared_matrix,
    tying,
)
from gpt.experiments.masks import unmasked_logits
from gpt.model import GPT
from gpt.trace import Trace

TEXT = [5, 1, 60, 8, 8, 30, 2]
SMALL = GPTConfig(vocab_size=500, block_size=64, n_layer=12, n_head=4, n_embd=64)


def test_with_the_causal_mask_a_token_changes_nothing_before_it(model: GPT) -> None:
    leak = future_leak(model, TEXT, 4, 11)
    assert leak.with_mask[:4].max() < 1e-6
    assert leak.with_mask[4:].min() > 1e-3
    assert leak.without_mask.min() > 1e-3  # everything moves


def test_without_the_mask_the_last_token_alone_sees_what_it_always_sees() -> None:
    """With one layer the last position looks at everything in either case."""
    torch.manual_seed(3)
    model = GPT(GPTConfig(vocab_size=61, block_size=16, n_layer=1, n_head=3, n_embd=24)).eval()
    idx = torch.tensor([TEXT])
    with torch.inference_mode():
        assert_close(unmasked_logits(model, idx)[0, -1], model(idx)[0, -1], atol=1e-5, rtol=0)


def test_a_place_outside_of_the_text_is_refused(model: GPT) -> None:
    with pytest.raises(ValueError, match=r"position 7 does not exist: the text has positions 0 to 6"):
        future_leak(model, TEXT, 7, 0)


def test_padding_on_the_left_needs_its_mask(model: GPT) -> None:
    effect = padding_effect(model, TEXT, 4)
    assert effect.with_mask.shape == effect.without_mask.shape == (len(TEXT),)
    assert effect.with_mask.max() < 1e-5
    assert effect.without_mask.min() > 1e-3


def test_padding_on_the_right_is_hidden_by_the_causal_mask(model: GPT) -> None:
    effect = padding_effect(model, TEXT, 4, side="right")
    assert effect.with_mask.max() < 1e-5
    assert effect.without_mask.max() < 1e-5


def test_chance_cannot_be_learned_but_it_can_be_looked_up() -> None:
    found = learn_chance(steps=60)
    assert found.floor == pytest.approx(math.log(8))
    assert len(found.with_mask) == len(found.without_mask) == 60
    assert min(found.with_mask) > found.floor - 0.05
    assert found.without_mask[-1] < found.floor / 2


def test_a_fresh_model_is_as_good_as_a_guess() -> None:
    first = first_prediction(SMALL)
    assert first.uniform == math.log(500)
    assert first.loss == pytest.approx(first.uniform, abs=0.05)
    assert first.logits.shape == (500,)
    assert first.logits_std == pytest.approx(0.02 * math.sqrt(64), rel=0.3)  # normed states times rows of N(0, 0.02)


def test_large_first_weights_are_worse_than_a_guess() -> None:
    assert first_prediction(SMALL, std=0.2).loss > math.log(500) + 0.5
    assert first_prediction(SMALL, std=0.0).loss == pytest.approx(math.log(500))
    with pytest.raises(ValueError, match="std must be a number of at least 0, not -1"):
        first_prediction(SMALL, std=-1)


def test_the_scaling_keeps_the_residual_stream_from_growing() -> None:
    norms = residual_norms(SMALL)
    assert len(norms.scaled) == len(norms.unscaled) == 13
    assert norms.scaled[0] == norms.unscaled[0] == pytest.approx(0.02 * math.sqrt(2 * 64), rel=0.05)
    grown = [math.sqrt(row[-1] ** 2 - row[0] ** 2) for row in (norms.scaled, norms.unscaled)]
    assert grown[1] / grown[0] == pytest.approx(math.sqrt(2 * 12), rel=0.25)  # each branch is that much longer


def test_norms_of_a_running_model_are_those_of_its_trace(model: GPT) -> None:
    trace = Trace()
    model(torch.tensor([TEXT]), trace=trace)
    norms = model_norms(model, TEXT)
    assert norms[0] == pytest.approx(trace.layers[0].resid_pre[0].norm(dim=1).mean().item())
    assert norms[2] == pytest.approx(trace.layers[2].resid_pre[0].norm(dim=1).mean().item())
    assert norms[3] == pytest.approx(trace.layers[2].resid_post[0].norm(dim=1).mean().item())


def test_the_curriculums_counts_with_and_without_tying() -> None:
    counts = tying(GPTConfig(qkv_bias=False))
    assert (counts.tied, counts.untied, counts.saved) == (124_412_160, 163_009_536, 50257 * 768)


def test_a_shared_matrix_knows_itself_and_learns_from_both_ends() -> None:
    config = GPTConfig(vocab_size=500, block_size=16, n_layer=1, n_head=2, n_embd=64)
    tied, untied = shared_matrix(config, TEXT), shared_matrix(replace(config, tie_weights=False), TEXT)
    assert tied.own_row_first == 1.0
    assert untied.own_row_first < 0.02
    assert tied.rows_taught == 1.0
    assert untied.rows_taught == pytest.approx(len(set(TEXT[:-1])) / 500)


def test_learned_positions_end_where_training_ended() -> None:
    learned, rotary = (
        extrapolation(position, trained_length=16, tested_length=32, steps=100) for position in ("learned", "rotary")
    )
    assert len(learned.by_position) == 32
    assert learned.inside < 1.0 < learned.beyond  # ln(8) = 2.08 knows nothing, 0.47 knows the rule
    assert rotary.inside < 1.0
    assert rotary.beyond < learned.beyond - 0.5


def test_one_seed_is_one_extrapolation() -> None:
    one, same, other = (extrapolation("rotary", tested_length=40, steps=2, seed=seed) for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize(
    ("position", "lengths", "said"),
    [
        ("none", (32, 96), "position must be one of learned, rotary, not 'none'"),
        ("rotary", (32, 32), "below tested_length, not 32 and 32"),
    ],
)
def test_what_cannot_be_extrapolated_is_refused(position: str, lengths: tuple[int, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        extrapolation(position, trained_length=lengths[0], tested_length=lengths[1])


def test_rotary_closeness_depends_on_the_distance_alone() -> None:
    """q at m and k at n give cos((m - n) speed), summed over the pairs, as complex numbers do."""
    closeness = rotary_closeness(8, torch.arange(5))
    speeds = [10000 ** (-2 * i / 8) for i in range(4)]
    by_hand = [sum(math.cos(d * speed) for speed in speeds) / 4 for d in range(5)]
    assert closeness.tolist() == pytest.approx(by_hand, abs=1e-6)


def test_one_seed_is_one_model() -> None:
    assert torch.equal(first_prediction(SMALL, seed=1).logits, first_prediction(SMALL, seed=1).logits)
    assert first_prediction(SMALL, seed=1).loss != first_prediction(SMALL, seed=2).loss
