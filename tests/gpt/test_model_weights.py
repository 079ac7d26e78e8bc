"""Initial weights, tied weights and gradients."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch

from gpt.config import GPTConfig
from gpt.model import GPT


def test_initial_weights_have_the_distribution_of_gpt2():
    model = GPT(GPTConfig(vocab_size=500, block_size=200, n_layer=6, n_head=4, n_embd=128, tie_weights=False))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name
        elif parameter.dim() == 1:
            assert (parameter == 1).all(), name
        else:
            std = 0.02 / math.sqrt(2 * 6) if name.endswith("c_proj.weight") else 0.02
            assert parameter.std().item() == pytest.approx(std, rel=0.03), name
            assert abs(parameter.mean().item()) < 5 * std / math.sqrt(parameter.numel()), name


def initial_weights(generator: torch.Generator | None) -> torch.Tensor:
    """Return all parameters of a new model in one vector."""
    model = GPT(GPTConfig(261, 20, 3, 3, 96, tie_weights=False), generator=generator)
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_models_built_concurrently_have_the_weights_of_models_built_alone():
    alone, start = initial_weights(torch.Generator().manual_seed(1)), Barrier(2)

    def build(_) -> torch.Tensor:
        start.wait()
        return initial_weights(torch.Generator().manual_seed(1))

    with ThreadPoolExecutor(2) as threads:
        assert sum(torch.equal(weights, alone) for weights in threads.map(build, range(20))) == 20
