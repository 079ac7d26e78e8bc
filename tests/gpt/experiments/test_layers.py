"""Activations, dropout, normalisation, initial weights and shortcuts, compared with formulas and printed numbers."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from gpt.config import GPTConfig
from gpt.experiments.initialisation import initial_prediction, residual_norms
from gpt.experiments.layers import (
    PLACEMENTS,
    Placement,
    depth_profile,
    dropout_effect,
    gelu_difference,
    norm_input,
    normalise,
    norms_of,
    xavier_model,
)
from gpt.experiments.notebook import PRINTED, agrees, run_notebook
from gpt.model import GPT, ForwardContext
from gpt.tokenizer import gpt2_tokenizer
from gpt.trace import Trace


def test_the_two_gelus_differ_as_their_formulas_do() -> None:
    for x in (-2.7, -1.0, 0.0, 0.5, 2.7):
        exact = x * (1 + math.erf(x / math.sqrt(2))) / 2
        approximate = x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
        assert gelu_difference(torch.tensor(x)).item() == pytest.approx(approximate - exact, abs=1e-7)
    difference = gelu_difference(torch.linspace(-6, 6, 1201)).abs()
    assert 4e-4 < difference.max() < 5e-4
    assert abs(-6 + difference.argmax().item() / 100) == pytest.approx(2.7, abs=0.01)


TEXT = [5, 1, 60, 8, 8, 30, 2]


def test_two_passes_differ_in_training_mode_and_are_the_models_own_in_evaluation_mode(model: GPT) -> None:
    (training, evaluation, _), state = dropout_effect(model, TEXT, p=0.5), torch.get_rng_state()
    logits = model(torch.tensor([TEXT]))[0, -1]
    for row in evaluation:
        assert_close(row, logits, atol=1e-5, rtol=0)
    assert torch.equal(*evaluation)
    assert (training[0] - training[1]).abs().max() > 1e-3
    assert torch.equal(dropout_effect(model, TEXT, p=0.5)[0], training)
    assert not torch.equal(dropout_effect(model, TEXT, p=0.5, seed=1)[0], training)
    assert torch.equal(torch.get_rng_state(), state)
    assert not model.training


def test_what_is_not_dropped_is_divided_by_1_minus_p(model: GPT) -> None:
    p = 0.1
    effects = [dropout_effect(model, TEXT, p=p, seed=seed)[2] for seed in range(4)]
    for name in effects[0]:
        before, after = map(torch.cat, zip(*(parts[name] for parts in effects), strict=True))
        kept = after != 0
        assert_close(after[kept], before[kept] / (1 - p))
        n = int((before != 0).sum())  # outside a window, attention weights are 0 even without dropout
        share = int(((before != 0) & ~kept).sum()) / n
        assert share == pytest.approx(p, abs=4 * (p * (1 - p) / n) ** 0.5), name


ROUNDED = {"atol": 5e-5, "rtol": 0}  # printed with four digits


@pytest.mark.parametrize("layer", [0, 2])
def test_the_input_of_a_models_norm_normalises_to_its_output(model: GPT, layer: int) -> None:
    ids, trace = [5, 1, 60, 8], Trace()
    seen: dict[str, torch.Tensor] = {}
    for name in norms_of(model.config)[:-1]:
        module = getattr(model.h[layer], name)
        module.register_forward_hook(lambda _, __, out, name=name: seen.update({name: out[0]}))
    with torch.inference_mode():
        model(torch.tensor([ids]), trace=trace)
    seen["ln_f"] = trace.final_norm[0]
    for name, expected in seen.items():
        rows, scale, shift = norm_input(model, ids, name, layer)
        done = normalise(rows, scale=scale, shift=shift, eps=model.config.norm_eps, kind=model.config.norm)
        assert_close(done["after"], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("placement", PLACEMENTS)
@torch.inference_mode()
def test_a_block_is_torchs_layer(placement: Placement) -> None:
    config = GPTConfig(vocab_size=11, block_size=8, n_layer=1, n_head=3, n_embd=12)
    block = xavier_model(config, placement, seed=0).blocks[0]
    for parameter in block.parameters():
        parameter.normal_(generator=torch.Generator().manual_seed(1))
    gelu = partial(F.gelu, approximate="tanh")
    options = {"activation": gelu, "batch_first": True, "norm_first": placement == "pre"}
    layer = nn.TransformerEncoderLayer(12, 3, 48, dropout=0, **options)
    names = {"self_attn.in_proj_": "attn.c_attn.", "self_attn.out_proj.": "attn.c_proj.", "linear1.": "mlp.c_fc."}
    names |= {"linear2.": "mlp.c_proj.", "norm1.": "ln_1.", "norm2.": "ln_2."}
    ours = block.state_dict()
    theirs = {a + kind: ours[b + kind] for a, b in names.items() for kind in ("weight", "bias")}
    layer.load_state_dict(theirs)
    x = torch.randn(2, 5, 12)
    expected = layer(x, src_mask=nn.Transformer.generate_square_subsequent_mask(5), is_causal=True)
    assert_close(block(x, ForwardContext()), expected, atol=1e-4, rtol=1e-4)


def test_the_straight_path_is_free_with_pre_norm_and_narrows_with_post_norm() -> None:
    pre, post = (depth_profile(placement, n_layer=16) for placement in PLACEMENTS)
    assert pre["straight_gradients"] == pytest.approx([1.0] * 17, rel=1e-4)
    assert post["straight_gradients"][0] < 0.01
    assert sorted(post["straight_gradients"]) == post["straight_gradients"]
    assert post["lengths"][1:] == pytest.approx([8.0] * 16, rel=1e-3)  # the square root of 64 numbers with variance 1
    assert pre["lengths"][-1] > 2 * pre["lengths"][0]


SMALL = GPTConfig(vocab_size=500, block_size=64, n_layer=12, n_head=4, n_embd=64)


def test_an_untrained_model_has_the_loss_of_the_uniform_distribution() -> None:
    logits, loss = initial_prediction(SMALL)
    assert loss == pytest.approx(math.log(500), abs=0.05)
    assert logits.shape == (500,)
    # Normalised states times rows drawn from N(0, 0.02).
    assert logits.std().item() == pytest.approx(0.02 * math.sqrt(64), rel=0.3)


def test_the_scaling_keeps_the_residual_stream_from_growing() -> None:
    scaled, unscaled = residual_norms(SMALL)
    assert len(scaled) == len(unscaled) == 13
    assert scaled[0] == unscaled[0] == pytest.approx(0.02 * math.sqrt(2 * 64), rel=0.05)
    grown = [math.sqrt(row[-1] ** 2 - row[0] ** 2) for row in (scaled, unscaled)]
    assert grown[1] / grown[0] == pytest.approx(math.sqrt(2 * 12), rel=0.25)  # each branch is longer by this factor


@pytest.mark.thorough
def test_every_printed_value_is_computed_from_the_seed_to_the_six_tokens() -> None:
    values = dict(run_notebook())
    assert list(values) == list(PRINTED)
    assert [value for value in values.items() if not agrees(*value)] == []
    assert gpt2_tokenizer().decode([*values["tokens"]]) == " Featureiman Byeswickattribute argue"
