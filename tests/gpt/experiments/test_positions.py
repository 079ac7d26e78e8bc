"""Positions beyond those seen in training."""

from __future__ import annotations

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


@pytest.mark.thorough
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
