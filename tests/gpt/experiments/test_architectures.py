"""Effects of the changes from GPT-2 to Llama, on random models of both architectures."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from gpt.analysis.tracing import trace_text
from gpt.experiments.architectures import bias_effect, norm_effect
from gpt.model import GPT
from gpt.training.recipe import Recipe

GPT2 = Recipe(n_layer=2, n_head=4, n_embd=32, block_size=40)
LLAMA = replace(GPT2, architecture="llama", bias=False, n_kv_head=2)
IDS = [3, 1, 4, 1, 5, 9, 2, 6]


def random_model(recipe: Recipe) -> GPT:
    """Return a model with larger than initial weights, so that its parts have an effect."""
    model = GPT(recipe.model_config(300)).eval()
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=generator)
    return model


@pytest.fixture(params=[GPT2, LLAMA], ids=["gpt2", "llama"])
def model(request: pytest.FixtureRequest) -> GPT:
    return random_model(request.param)


@torch.inference_mode()
def test_the_norm_without_its_weights_is_that_of_the_model(model: GPT) -> None:
    norm = model.blocks[1].ln_1
    torch.nn.init.ones_(norm.weight)
    if norm.bias is not None:
        torch.nn.init.zeros_(norm.bias)
    before = trace_text(model, IDS).layers[1].resid_pre[0, -1]
    found = norm_effect(model, IDS, 1)
    for row, moments in zip((before, norm(before)), found, strict=True):
        assert row.mean().item() == pytest.approx(moments.mean, abs=1e-5)
        assert row.square().mean().sqrt().item() == pytest.approx(moments.rms, abs=1e-5)
    assert found[1].rms == pytest.approx(1, abs=1e-4)
    assert (abs(found[1].mean) < 1e-6) == (model.config.norm == "layer")


def test_biases_set_to_zero_change_the_loss_and_stay_in_the_model() -> None:
    model = random_model(GPT2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    n_biases, loss, loss_without = bias_effect(model, IDS)
    assert loss == pytest.approx(model.loss(torch.tensor([IDS[:-1]]), torch.tensor([IDS[1:]])).item(), abs=1e-5)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    for name, value in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.zeros_(value)
    without = model.loss(torch.tensor([IDS[:-1]]), torch.tensor([IDS[1:]])).item()
    assert loss_without == pytest.approx(without, abs=1e-5)
    assert n_biases == sum(p.numel() for name, p in model.named_parameters() if name.endswith("bias"))
    assert bias_effect(random_model(LLAMA), IDS)[0] == 0
