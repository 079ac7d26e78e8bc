"""Pre-norm and post-norm blocks: parity with torch's encoder layer, and the laws of their gradients."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from gpt.config import GPTConfig
from gpt.experiments.norm_placement import PLACEMENTS, Placement, depth_profile, xavier_model
from gpt.model import ForwardContext


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
    assert post.lengths[1:] == pytest.approx([8.0] * 16, rel=1e-3)  # the square root of 64 numbers of variance 1
    assert pre.lengths[-1] > 2 * pre.lengths[0]


def test_gradients_fall_with_the_number_of_layers_with_pre_norm_only() -> None:
    def last(placement: Placement, n_layer: int) -> float:
        return depth_profile(placement, n_layer=n_layer).weight_gradients[-1]

    assert last("pre", 24) < 0.7 * last("pre", 4)
    assert last("post", 24) > 0.9 * last("post", 4)


def test_the_seed_determines_the_profile_and_torchs_global_generator_is_not_used() -> None:
    state = torch.get_rng_state()
    one, same, other = (depth_profile("post", n_layer=2, seed=seed) for seed in (1, 1, 2))
    assert one == same != other
    assert torch.equal(torch.get_rng_state(), state)


def test_unknown_placements_are_refused() -> None:
    with pytest.raises(ValueError, match=r"placement must be one of .* not 'middle'"):
        depth_profile("middle")  # type: ignore[arg-type]
