"""Nearest tokens and similarity of positions, computed by hand."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from gpt.analysis.embeddings import nearest_tokens, position_similarity
from gpt.config import GPTConfig
from gpt.model import GPT


@pytest.fixture
def model() -> GPT:
    """Embeddings in a plane, for tokens and positions: at 0, 90, 10, 180 and 30 degrees, with different norms."""
    model = GPT(GPTConfig(vocab_size=5, block_size=3, n_layer=1, n_head=1, n_embd=2))
    angle = torch.deg2rad(torch.tensor([0.0, 90, 10, 180, 30]))
    norms = torch.tensor([[1.0], [2], [9], [1], [3]])
    with torch.no_grad():
        model.wte.weight.copy_(torch.stack((angle.cos(), angle.sin()), dim=1) * norms)
        model.wpe.weight.copy_(torch.tensor([[1.0, 0], [0, 3], [-2, 0]]))
    return model


def test_nearest_tokens_are_ordered_by_angle_without_the_token_itself(model):
    nearest = nearest_tokens(model, 0, k=10)
    assert nearest.token.tolist() == [2, 4, 1, 3]
    assert_close(nearest.cosine, torch.tensor([10.0, 30, 90, 180]).deg2rad().cos(), atol=1e-6, rtol=0)
    assert nearest_tokens(model, 0, k=2).token.tolist() == [2, 4]


def test_similarity_of_positions_is_their_cosine(model):
    assert_close(position_similarity(model), torch.tensor([[1.0, 0, -1], [0, 1, 0], [-1, 0, 1]]))
