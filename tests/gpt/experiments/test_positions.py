"""Positions beyond those seen in training."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close
from transformers.models.distilbert.modeling_distilbert import create_sinusoidal_embeddings

from gpt.config import Position
from gpt.experiments.positions import Extrapolation, rotary_closeness, sinusoidal_positions, train_extrapolation


def extrapolation(position: Position, **options: int) -> Extrapolation:
    """Return the losses after all updates."""
    *_, last = train_extrapolation(position, tests=1, **options)
    return last


def test_learned_positions_fail_beyond_the_trained_length_and_rotary_ones_less() -> None:
    learned, rotary = (
        extrapolation(position, trained_length=16, tested_length=32, steps=100) for position in ("learned", "rotary")
    )
    assert len(learned.by_position) == 32
    assert learned.inside < 1.0 < learned.beyond  # uniform: ln(8) = 2.08; floor: 0.47
    assert rotary.inside < 1.0
    assert rotary.beyond < learned.beyond - 0.5


def test_sinusoidal_positions_are_those_of_transformers_and_as_close_as_rotary_ones() -> None:
    expected = torch.empty(50, 16)
    create_sinusoidal_embeddings(50, 16, expected)
    positions = sinusoidal_positions(50, 16)
    assert_close(positions, expected, atol=1e-5, rtol=0)
    closeness = (positions[30:] @ positions[30] / 8).double()  # 8 pairs of length 1
    assert_close(closeness, rotary_closeness(16, torch.arange(20)), atol=1e-5, rtol=0)


def test_losses_before_the_end_do_not_change_those_at_the_end() -> None:
    options = {"trained_length": 9, "tested_length": 12, "steps": 4}
    first, last = train_extrapolation("rotary", tests=2, **options)
    assert (first.steps, last.steps) == (2, 4)
    assert last == extrapolation("rotary", **options)


def test_the_seed_determines_the_extrapolation() -> None:
    one, same, other = (extrapolation("rotary", tested_length=40, steps=2, seed=seed) for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize(
    ("position", "lengths", "said"),
    [
        ("none", (32, 96), "position must be one of learned, rotary, not 'none'"),
        ("rotary", (32, 32), "below tested_length, not 32 and 32"),
    ],
)
def test_invalid_arguments_of_the_extrapolation_are_refused(position: str, lengths: tuple[int, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        extrapolation(position, trained_length=lengths[0], tested_length=lengths[1])


def test_rotary_closeness_depends_on_the_distance_alone() -> None:
    """For q at m and k at n it is the sum of cos((m - n) speed) over the pairs, as complex numbers give."""
    closeness = rotary_closeness(8, torch.arange(5))
    speeds = [10000 ** (-2 * i / 8) for i in range(4)]
    by_hand = [sum(math.cos(d * speed) for speed in speeds) / 4 for d in range(5)]
    assert closeness.tolist() == pytest.approx(by_hand, abs=1e-6)
