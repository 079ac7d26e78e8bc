"""The model, its parts, its configuration and its initial weights. Parity with transformers is in tests/parity."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize, prune
from torch.testing import assert_close

from gpt.config import GPTConfig
from gpt.layers import LayerNorm
from gpt.model import GPT
from gpt.trace import Trace
from tests.gpt.family_configs import randomized

EXACT = {"atol": 1e-5, "rtol": 0}


def tiny(**kwargs) -> GPT:
    return GPT(GPTConfig(**{"vocab_size": 61, "block_size": 16, "n_layer": 2, "n_head": 2, "n_embd": 12} | kwargs))


@torch.inference_mode()
def test_later_tokens_do_not_change_earlier_logits(model):
    idx = torch.randint(61, (1, 16))
    changed = idx.clone()
    changed[0, 9] = (idx[0, 9] + 1) % 61
    before, after = model(idx), model(changed)
    assert_close(after[:, :9], before[:, :9], **EXACT)
    assert (after[:, 9:] - before[:, 9:]).abs().amax(dim=-1).min() > 1e-3


@torch.inference_mode()
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_equals_unpadded(model, side, traced):
    texts = [torch.randint(61, (n,)) for n in (16, 9, 1)]
    idx, mask = torch.full((3, 16), 60), torch.zeros(3, 16, dtype=torch.long)
    for row, text in enumerate(texts):
        where = slice(16 - len(text), 16) if side == "left" else slice(len(text))
        idx[row, where], mask[row, where] = text, 1
    logits = model(idx, attention_mask=mask, trace=Trace() if traced else None)
    assert logits.isfinite().all()
    for row, text in enumerate(texts):
        assert_close(logits[row, mask[row].bool()], model(text[None])[0], **EXACT)


@torch.inference_mode()
def test_a_fully_masked_row_gives_zeros_in_eager_and_sdpa_attention(model):
    idx = torch.randint(61, (2, 6))
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]])
    trace = Trace()
    open_logits, fused_logits = model(idx, attention_mask=mask, trace=trace), model(idx, attention_mask=mask)
    assert_close(open_logits, fused_logits, **EXACT)
    for block, layer in zip(model.h, trace.layers, strict=True):
        blind = ~mask.bool()
        assert (layer.attn_weights.transpose(1, 2)[blind] == 0).all()
        nothing = block.attn.c_proj(torch.zeros(8, block.attn.c_proj.in_features))
        nothing = nothing if block.ln_1_post is None else block.ln_1_post(nothing)
        assert_close(layer.attn_out[blind], nothing, atol=1e-6, rtol=0)
        seen = mask[:, None, None, :].bool().expand_as(layer.attn_weights)
        assert (layer.attn_weights[~seen] == 0).all()


def test_ids_and_masks_that_do_not_fit_are_refused():
    for T in (0, 17):
        with pytest.raises(ValueError, match=f"{T} tokens do not fit a context of 1 to 16"):
            tiny()(torch.zeros(1, T, dtype=torch.long))
    with pytest.raises(ValueError, match=r"\(batch, tokens\), not \(3,\); pass idx\[None\]"):
        tiny()(torch.tensor([1, 2, 3]))
    with pytest.raises(ValueError, match=r"attention_mask must have shape \(2, 5\), not \(2, 4\)"):
        tiny()(torch.zeros(2, 5, dtype=torch.long), attention_mask=torch.ones(2, 4))


def test_loss_is_the_mean_cross_entropy_over_targets_that_are_not_ignored(model):
    idx, targets = torch.randint(61, (2, 8)), torch.randint(61, (2, 8))
    targets[0, :5] = -100
    p = model(idx).detach().softmax(dim=-1)
    counted = [-math.log(p[b, t, targets[b, t]]) for b in range(2) for t in range(8) if targets[b, t] != -100]
    assert len(counted) == 11
    assert model.loss(idx, targets).item() == pytest.approx(sum(counted) / 11, rel=1e-5)


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


@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm_equals_its_formula(bias):
    norm = LayerNorm(7, bias=bias)
    torch.nn.init.normal_(norm.weight)
    if bias:
        torch.nn.init.normal_(norm.bias)
    x = 5 + 3 * torch.randn(4, 6, 7)
    assert_close(norm(x), norm.formula(x), atol=1e-5, rtol=1e-5)


def test_layers_can_be_pruned_parametrised_and_replaced():
    model, idx = randomized(tiny()), torch.tensor([[1, 2, 3]])
    outputs = [model(idx)]
    prune.l1_unstructured(model.h[0].mlp.c_fc, "weight", 0.5)
    outputs.append(model(idx))
    prune.l1_unstructured(model.h[0].ln_1, "bias", 0.5)
    outputs.append(model(idx))
    parametrize.register_parametrization(model.h[1].attn.c_attn, "weight", nn.ReLU())
    outputs.append(model(idx))
    model.add_module("lm_head", nn.Linear(12, 61))
    outputs.append(model(idx))
    assert not any(torch.allclose(before, after) for before, after in pairwise(outputs))


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


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        *(({"n_layer": value}, f"n_layer.*at least 1, not {value!r}") for value in (0, 1.5, True, "12")),
        ({"n_embd": 10, "n_head": 3}, r"n_embd \(10\) must be divisible by n_head \(3\)"),
        ({"dropout": 1.0}, r"dropout must be at least 0 and below 1, not 1.0"),
        ({"dropout": -0.1}, "dropout"),
        ({"dropout": float("nan")}, "dropout"),
        ({"activation": "gelu_new"}, "activation must be one of .*gelu_tanh.*, not 'gelu_new'"),
        ({"position": "sinusoidal"}, "position must be one of .*rotary.*, not 'sinusoidal'"),
        ({"qk_norm": "heads"}, "qk_norm must be one of False, True, full, not 'heads'"),
        ({"attn_softcap": 0.0}, "attn_softcap must be a number above 0, not 0.0"),
        ({"logit_softcap": -1.0}, "logit_softcap must be a number between 0.0"),
        ({"unrotated_layers": 3}, "unrotated_layers must be a list of layers, not 3"),
        ({"unrotated_layers": (12,)}, "unrotated_layers must be a whole number between 0 and 11, not 12"),
        ({"position": "rotary", "n_embd": 15, "n_head": 3}, "5 numbers per head do not form pairs"),
    ],
)
def test_invalid_configurations_are_refused_with_value_and_limit(wrong, says):
    with pytest.raises(ValueError, match=says):
        GPTConfig(**wrong)
