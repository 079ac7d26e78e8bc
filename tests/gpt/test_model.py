"""The laws of the model and its parts; parity with transformers is in tests/parity."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from torch.testing import assert_close

from gpt.config import GPTConfig
from gpt.model import (
    ACTIVATIONS,
    GELU,
    GPT,
    CausalSelfAttention,
    Dropout,
    FeedForward,
    LayerNorm,
    TransformerBlock,
    apply_rotary,
    rotary_angles,
)
from gpt.seeding import seeded
from gpt.trace import Trace

EXACT = {"atol": 1e-5, "rtol": 0}


def tiny(**kwargs) -> GPT:
    return GPT(GPTConfig(**{"vocab_size": 61, "block_size": 16, "n_layer": 2, "n_head": 2, "n_embd": 12} | kwargs))


# The parts


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


def test_layer_norm_gives_the_numbers_of_a_hand_calculation():
    x = torch.tensor([[1.0, 2.0, 3.0]])  # mean 2, biased variance 2/3
    norm = LayerNorm(3, eps=0.0)
    assert_close(norm(x), torch.tensor([[-1.224745, 0.0, 1.224745]]))
    norm.weight.data, norm.bias.data = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0.0, 10.0, -1.0])
    assert_close(norm(x), torch.tensor([[-1.224745, 10.0, 3.898979]]))


@pytest.mark.parametrize("approximate", ["tanh", "none"])
def test_gelu_equals_its_formula(approximate):
    x = torch.linspace(-12, 12, 4001)
    gelu = GELU(approximate)
    assert_close(gelu(x), gelu.formula(x), atol=1e-6, rtol=1e-6)


def test_gelu_is_x_times_the_normal_distribution_function():
    x = [-3.0, -1.0, -0.75, 0.0, 0.5, 2.0]
    below = [0.0013498980, 0.1586552539, 0.2266273524, 0.5, 0.6914624613, 0.9772498681]  # a table of Phi
    expected = torch.tensor([a * p for a, p in zip(x, below, strict=True)])
    assert_close(GELU("none")(torch.tensor(x)), expected, atol=1e-6, rtol=0)
    difference = GELU("tanh")(torch.tensor(x)) - expected
    assert 1e-5 < difference.abs().max() < 1e-3, "the tanh form is close to the exact one, but not it"


@pytest.mark.parametrize("approximate", ["tanh", "none"])
def test_gelu_has_its_only_stationary_point_near_minus_three_quarters(approximate):
    x = torch.linspace(-3, 3, 6001, requires_grad=True)
    GELU(approximate)(x).sum().backward()
    signs = x.grad[:-1] * x.grad[1:]
    (flat,) = (signs < 0).nonzero().flatten().tolist()
    assert x[flat].item() == pytest.approx(-0.752, abs=2e-3)


def test_an_unknown_gelu_is_refused():
    with pytest.raises(ValueError, match="erf"):
        GELU("erf")


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


def test_rotary_scores_depend_on_the_distance_alone():
    q, k = torch.randn(8), torch.randn(8)

    def score(at: int, to: int) -> float:
        (cos, sin) = rotary_angles(torch.tensor([at, to]), 8)
        a, b = apply_rotary(torch.stack((q, k))[None, None], cos, sin)[0, 0]
        return (a @ b).item()

    assert score(9, 4) == pytest.approx(score(5, 0), abs=1e-4)
    assert score(9, 4) != pytest.approx(score(9, 5), abs=1e-2)


# The whole


@torch.inference_mode()
def test_later_tokens_do_not_change_earlier_logits(model):
    idx = torch.randint(61, (1, 16))
    changed = idx.clone()
    changed[0, 9] = (idx[0, 9] + 1) % 61
    before, after = model(idx), model(changed)
    assert_close(after[:, :9], before[:, :9], **EXACT)
    assert (after[:, 9:] - before[:, 9:]).abs().amax(dim=-1).min() > 1e-3


@torch.inference_mode()
def test_batched_equals_single(model):
    idx = torch.randint(61, (4, 11))
    assert_close(model(idx), torch.cat([model(row[None]) for row in idx]), **EXACT)


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
        assert_close(layer.attn_out[blind], block.attn.c_proj.bias.expand(8, -1), atol=1e-6, rtol=0)
        seen = mask[:, None, None, :].bool().expand_as(layer.attn_weights)
        assert (layer.attn_weights[~seen] == 0).all()


@torch.inference_mode()
@pytest.mark.parametrize("options", [{"bias": False}, {"qkv_bias": False}, {"tie_weights": False}, {"n_ff": 5}])
def test_options_run_and_traced_equals_plain(options):
    model, idx = tiny(**options).eval(), torch.randint(61, (2, 16))
    assert_close(model(idx, trace=Trace()), model(idx), **EXACT)
    names = {name for name, _ in model.named_parameters()}
    assert any(name.endswith("bias") for name in names) == options.get("bias", True)
    assert ("h.0.attn.c_attn.bias" in names) == (options.get("bias", True) and options.get("qkv_bias", True))


@torch.inference_mode()
def test_a_small_model_of_any_shape_takes_a_padding_mask():
    config = GPTConfig(vocab_size=10000, block_size=128, n_layer=2, n_head=4, n_embd=128, n_ff=512)
    mask = torch.ones(2, 16)
    mask[1, :5] = 0
    assert GPT(config)(torch.randint(10000, (2, 16)), attention_mask=mask).shape == (2, 16, 10000)


@pytest.mark.parametrize("T", [0, 17])
def test_a_text_that_does_not_fit_the_context_is_refused(T):
    with pytest.raises(ValueError, match=f"{T} tokens do not fit a context of 1 to 16"):
        tiny()(torch.zeros(1, T, dtype=torch.long))


def test_ids_without_a_batch_are_refused_with_what_to_write():
    with pytest.raises(ValueError, match=r"\(batch, tokens\), not \(3,\): one text is idx\[None\]"):
        tiny()(torch.tensor([1, 2, 3]))


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"attention_mask must have shape \(2, 5\), not \(2, 4\)"):
        tiny()(torch.zeros(2, 5, dtype=torch.long), attention_mask=torch.ones(2, 4))


# Weights, start, loss


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
    """Every parameter of a new model, in one vector."""
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


def test_loss_is_the_mean_cross_entropy_over_targets_that_are_not_ignored(model):
    idx, targets = torch.randint(61, (2, 8)), torch.randint(61, (2, 8))
    targets[0, :5] = -100
    p = model(idx).detach().softmax(dim=-1)
    counted = [-math.log(p[b, t, targets[b, t]]) for b in range(2) for t in range(8) if targets[b, t] != -100]
    assert len(counted) == 11
    assert model.loss(idx, targets).item() == pytest.approx(sum(counted) / 11, rel=1e-5)


def test_gradients_reach_every_parameter(model):
    idx = torch.randint(61, (4, 16))
    model.loss(idx, idx.roll(-1, 1)).backward()
    for name, parameter in model.named_parameters():
        assert 0 < parameter.grad.abs().max() < math.inf, name


def test_dropout_applies_in_training_mode_only():
    model, idx = tiny(dropout=0.5), torch.randint(61, (1, 16))
    torch.manual_seed(1)
    twin = tiny(dropout=0.0)
    twin.load_state_dict(model.state_dict())
    for trace in (None, Trace()):
        assert_close(model.eval()(idx, trace=trace), twin(idx), **EXACT)
    model.train()
    assert (model(idx) - model(idx)).abs().max() > 1e-3
    assert (model(idx, trace=Trace()) - model(idx, trace=Trace())).abs().max() > 1e-3


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
        "silu": [-0.268941, 1.761594],
        "gelu": [-0.158655, 1.954500],
        "gelu_tanh": [-0.158808, 1.954598],
    }
    assert set(ACTIVATIONS) == set(expected)
    for name, values in expected.items():
        assert_close(ACTIVATIONS[name](x), torch.tensor(values), atol=1e-6, rtol=0)
