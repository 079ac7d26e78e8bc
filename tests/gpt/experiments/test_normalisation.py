"""Layer normalisation, compared with the numbers printed in the curriculum and with torch."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from gpt.config import GPTConfig
from gpt.experiments.normalisation import (
    PLACEMENTS,
    Placement,
    depth_profile,
    linear_relu_rows,
    norm_input,
    normalise,
    norms_of,
    xavier_model,
)
from gpt.layers import LayerNorm
from gpt.model import GPT, ForwardContext
from gpt.trace import Trace
from tests.gpt.family_configs import FAMILIES

ROUNDED = {"atol": 5e-5, "rtol": 0}  # printed with four digits


@torch.inference_mode()
def test_the_curriculums_rows_and_their_moments() -> None:
    done = normalise(linear_relu_rows())
    rows = [[0.2260, 0.3470, 0, 0.2216, 0, 0], [0.2133, 0.2394, 0, 0.5198, 0.3297, 0]]
    assert_close(done.before, torch.tensor(rows), **ROUNDED)
    assert_close(done.mean, torch.tensor([0.1324, 0.2170]), **ROUNDED)
    assert_close(done.unbiased_variance, torch.tensor([0.0231, 0.0398]), **ROUNDED)
    assert_close(done.variance, done.unbiased_variance * 5 / 6)  # six numbers per row
    assert_close(LayerNorm(6)(done.before), done.after)


def test_normalised_rows_equal_torchs_layer_norm() -> None:
    rows, scale, shift = torch.randn(4, 7) * 3 + 1, torch.randn(7), torch.randn(7)
    done = normalise(rows, scale=scale, shift=shift, eps=1e-3)
    assert_close(done.after, nn.functional.layer_norm(rows, (7,), scale, shift, 1e-3))
    assert_close(done.standard, nn.functional.layer_norm(rows, (7,), None, None, 1e-3))
    assert_close(normalise(rows, scale=2.0, shift=-1.0).after, normalise(rows).standard * 2 - 1)


@pytest.mark.parametrize(
    ("rows", "eps", "said"),
    [(torch.ones(2, 1), 1e-5, r"C of at least 2, not \(2, 1\)"), (torch.ones(2, 3), 0.0, "eps must be above 0, not 0")],
)
def test_rows_that_cannot_be_normalised_are_refused(rows: torch.Tensor, eps: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        normalise(rows, eps=eps)


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
        read = norm_input(model, ids, name, layer)
        done = normalise(read.rows, scale=read.scale, shift=read.shift, eps=read.eps, kind=read.kind)
        assert_close(done.after, expected, atol=1e-5, rtol=0)


def test_a_norm_that_the_model_does_not_have_is_refused() -> None:
    model = GPT(replace(FAMILIES["olmo2"], n_layer=1))
    with pytest.raises(ValueError, match="norm must be one of ln_1_post, ln_2_post, ln_f, not 'ln_1'"):
        norm_input(model, [1], "ln_1")


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
    assert pre.straight_gradients == pytest.approx([1.0] * 17, rel=1e-4)
    assert post.straight_gradients[0] < 0.01
    assert sorted(post.straight_gradients) == list(post.straight_gradients)
    assert post.lengths[1:] == pytest.approx([8.0] * 16, rel=1e-3)  # the square root of 64 numbers with variance 1
    assert pre.lengths[-1] > 2 * pre.lengths[0]
