"""The parts of the model, one by one."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from gpt.config import GPTConfig
from gpt.layers import ACTIVATIONS, GELU, Dropout, LayerNorm
from gpt.model import GPT, CausalSelfAttention, FeedForward, TransformerBlock
from gpt.rotary import apply_rotary, rotary_angles
from gpt.seeding import seeded
from gpt.trace import Trace

EXACT = {"atol": 1e-5, "rtol": 0}


def tiny(**kwargs) -> GPT:
    return GPT(GPTConfig(**{"vocab_size": 61, "block_size": 16, "n_layer": 2, "n_head": 2, "n_embd": 12} | kwargs))


@pytest.mark.parametrize("position", ["learned", "rotary"])
@torch.inference_mode()
def test_the_parts_called_by_themselves_give_what_a_pass_records(position):
    model, trace = tiny(position=position).eval(), Trace()
    model(torch.randint(61, (2, 9)), trace=trace)
    for block, layer in zip(model.h, trace.layers, strict=True):
        assert_close(block(layer.resid_pre), layer.resid_post, **EXACT)
        assert_close(block.attn(block.ln_1(layer.resid_pre)), layer.attn_out, **EXACT)
        assert_close(block.mlp(block.ln_2(layer.resid_mid)), layer.mlp_out, **EXACT)
    assert_close(model.h[0](trace.layers[0].resid_pre[:, :1]), trace.layers[0].resid_post[:, :1], **EXACT)


@pytest.mark.parametrize("part", [CausalSelfAttention, FeedForward, TransformerBlock])
def test_a_part_built_by_itself_has_initial_weights(part):
    config = GPTConfig(n_head=2, n_embd=32)
    weights = [parameter for parameter in part(config).parameters() if parameter.dim() == 2]
    assert all(0.01 < weight.std().item() < 1 for weight in weights)
    x = torch.randn(2, 3, 32)
    assert part(config)(x).shape == x.shape


@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm_equals_its_formula(bias):
    norm = LayerNorm(7, bias=bias)
    torch.nn.init.normal_(norm.weight)
    if bias:
        torch.nn.init.normal_(norm.bias)
    x = 5 + 3 * torch.randn(4, 6, 7)
    assert_close(norm(x), norm.formula(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("approximate", ["tanh", "none"])
def test_gelu_equals_its_formula(approximate):
    x = torch.linspace(-12, 12, 4001)
    gelu = GELU(approximate)
    assert_close(gelu(x), gelu.formula(x), atol=1e-6, rtol=1e-6)


def test_rotary_positions_equal_rotations_of_complex_numbers():
    hs, positions = 10, torch.tensor([0, 1, 2, 7, 40])
    x = torch.randn(2, 3, 5, hs)
    speed = 10000.0 ** (-2 * torch.arange(hs // 2) / hs)
    turn = torch.polar(torch.ones(5, hs // 2), positions[:, None] * speed)  # e^(i position speed)
    turned = torch.complex(x[..., : hs // 2], x[..., hs // 2 :]) * turn
    expected = torch.cat((turned.real, turned.imag), dim=-1)
    assert_close(apply_rotary(x, *rotary_angles(positions, hs)), expected, **EXACT)
    batch = positions.repeat(2, 1)
    assert_close(apply_rotary(x, *rotary_angles(batch, hs)), expected, **EXACT)


def test_the_dropout_formula_is_torchs_dropout():
    dropout, x = Dropout(0.3), torch.randn(64, 64)
    with seeded(5):
        dropped = torch.nn.functional.dropout(x, 0.3)
    with seeded(5):
        assert_close(dropout.formula(x), dropped)
    assert torch.equal(dropout.eval().formula(x), x)


def test_every_activation_of_the_configuration_exists():
    x = torch.tensor([-1.0, 2.0])
    expected = {
        "relu": [0.0, 2.0],
        "relu2": [0.0, 4.0],
        "silu": [-0.268941, 1.761594],
        "gelu": [-0.158655, 1.954500],
        "gelu_tanh": [-0.158808, 1.954598],
    }
    assert set(ACTIVATIONS) == set(expected)
    for name, values in expected.items():
        assert_close(ACTIVATIONS[name](x), torch.tensor(values), atol=1e-6, rtol=0)
