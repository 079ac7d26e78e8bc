"""Initial weights, tied weights and gradients."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch

from gpt.config import GPTConfig
from gpt.model import GPT


def tiny(**kwargs) -> GPT:
    return GPT(GPTConfig(**{"vocab_size": 61, "block_size": 16, "n_layer": 2, "n_head": 2, "n_embd": 12} | kwargs))


def test_a_tied_head_shares_the_memory_of_the_embedding():
    assert (model := tiny()).lm_head.weight is model.wte.weight
    untied = tiny(tie_weights=False)
    assert untied.lm_head.weight.data_ptr() != untied.wte.weight.data_ptr()


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
        assert sum(torch.equal(weights, alone) for weights in threads.map(build, range(60))) == 60


def test_a_generator_gives_the_same_weights_as_the_global_one_and_leaves_it_unchanged():
    state = torch.get_rng_state()
    first, other = (initial_weights(torch.Generator().manual_seed(seed)) for seed in (7, 8))
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(7)
    assert torch.equal(first, initial_weights(None))
    assert not torch.equal(first, other)


def test_an_untrained_model_predicts_every_token_with_about_equal_probability():
    idx = torch.randint(61, (4, 16))
    assert tiny().loss(idx, idx.roll(-1, 1)).item() == pytest.approx(math.log(61), abs=0.05)


def test_gradients_reach_every_parameter(model):
    idx = torch.randint(61, (4, 16))
    model.loss(idx, idx.roll(-1, 1)).backward()
    for name, parameter in model.named_parameters():
        assert 0 < parameter.grad.abs().max() < math.inf, name
