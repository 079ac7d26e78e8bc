"""Contributions sum to the logit, and each is what its component adds."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from gpt.analysis.attribution import Attribution, direct_logit_attribution
from gpt.analysis.tracing import trace_text
from gpt.cache import KVCache
from gpt.config import GPTConfig
from gpt.edits import Edits, Patch
from gpt.model import GPT
from gpt.trace import Trace
from tests.conftest import randomized
from tests.gpt.analysis.copying_model import copying_model

IDS = [3, 1, 4, 1, 5, 9, 2, 6]


def largest(parts: Attribution) -> float:
    """The size of the largest part."""
    single = (parts.embedding, parts.position, parts.norm_bias)
    return max(*map(abs, single), *(each.abs().max().item() for each in (parts.heads, parts.attn_bias, parts.mlp)))


@pytest.mark.parametrize("against", [None, 12])
@pytest.mark.parametrize("position", [0, 7])
@torch.inference_mode()
def test_parts_sum_to_the_logit_exactly_in_double_precision(model, position, against):
    model.double()
    logits = model(torch.tensor([IDS]))[0, position]
    parts = direct_logit_attribution(model, trace_text(model, IDS), position, 33, against=against)
    expected = (logits[33] - (0 if against is None else logits[against])).item()
    assert parts.logit == pytest.approx(expected, abs=1e-12)
    assert parts.total == pytest.approx(expected, abs=1e-9)
    assert abs(parts.position) > 1e-3 or model.wpe is None


@pytest.mark.parametrize(
    "shape",
    [{}, {"bias": False}, {"qkv_bias": False, "tie_weights": False}, {"n_head": 1}, {"position": "rotary"}],
    ids=str,
)
@torch.inference_mode()
def test_parts_sum_to_the_logit_within_a_ten_thousandth_of_the_largest_part(shape):
    config = GPTConfig(**{"vocab_size": 97, "block_size": 16, "n_layer": 6, "n_head": 4, "n_embd": 48} | shape)
    model = randomized(GPT(config)).eval()
    for token in (0, 50, 96):
        parts = direct_logit_attribution(model, trace_text(model, IDS), 5, token)
        logit = model(torch.tensor([IDS]))[0, 5, token].item()
        assert abs(parts.total - logit) < 1e-4 * largest(parts)
        assert parts.heads.shape == (6, config.n_head)
        assert parts.attn_bias.shape == parts.mlp.shape == (6,)


@torch.inference_mode()
def test_a_contribution_is_the_decrease_of_the_logit_without_it_at_a_constant_scale(model):
    model.double()
    trace = trace_text(model, IDS)
    parts = direct_logit_attribution(model, trace, 6, 33)
    stream = trace.layers[-1].resid_post[0, 6]
    variance = stream.var(unbiased=False)

    def logit(x: torch.Tensor) -> torch.Tensor:
        normed = (x - x.mean()) / torch.sqrt(variance + 1e-5) * model.ln_f.weight + model.ln_f.bias
        return normed @ model.lm_head.weight[33]

    def lost(part: torch.Tensor) -> float:
        return (logit(stream) - logit(stream - part)).item()

    for layer in range(3):
        c_proj, traced = model.h[layer].attn.c_proj, trace.layers[layer]
        for head in range(3):
            seen = traced.attn_weights[0, head, 6] @ traced.attn_v[0, head]  # (hs,)
            written = c_proj.weight[:, 8 * head : 8 * head + 8] @ seen
            assert parts.heads[layer, head].item() == pytest.approx(lost(written), abs=1e-9)
        assert parts.attn_bias[layer].item() == pytest.approx(lost(c_proj.bias), abs=1e-9)
        assert parts.mlp[layer].item() == pytest.approx(lost(traced.mlp_out[0, 6]), abs=1e-9)
    assert parts.embedding == pytest.approx(lost(model.wte.weight[IDS[6]]), abs=1e-9)
    assert parts.position == pytest.approx(0 if model.wpe is None else lost(model.wpe.weight[6]), abs=1e-9)
    assert parts.norm_bias == pytest.approx((model.ln_f.bias @ model.lm_head.weight[33]).item(), abs=1e-9)
    assert parts.scale == pytest.approx(torch.sqrt(variance + 1e-5).item(), abs=1e-12)


def test_only_the_copying_head_contributes_to_the_answer():
    model = copying_model()
    parts = direct_logit_attribution(model, trace_text(model, [1, 2, 3, 1]), 3, 2, against=3)
    assert parts.heads[1, 0].item() == pytest.approx(parts.logit, abs=1e-5)
    assert parts.logit > 5
    others = torch.stack((*parts.heads[0], parts.heads[1, 1], *parts.attn_bias, *parts.mlp))
    assert_close(others, torch.zeros(7), atol=1e-6, rtol=0)
    assert max(abs(parts.embedding), abs(parts.position), abs(parts.norm_bias)) < 1e-6


@pytest.mark.parametrize(
    "edits",
    [
        Edits(head_scale={(1, 0): 0.0, (2, 2): -1.5}),
        Edits(attn_scale={0: 0.5, 1: 0.0}, mlp_scale={1: 0.0}, head_scale={(0, 1): 3.0}),
        Edits(activation="relu", drop_positions=True),
        Edits(patches=(Patch("resid_mid", 1, 2, torch.ones(24)),)),  # another position than the attributed one
    ],
)
@torch.inference_mode()
def test_parts_of_an_edited_pass_sum_to_its_logit(model, edits):
    model.double()
    parts = direct_logit_attribution(model, trace_text(model, IDS, edits=edits), 6, 33, edits=edits)
    assert parts.total == pytest.approx(model(torch.tensor([IDS]), edits=edits)[0, 6, 33].item(), abs=1e-9)
    for (layer, head), factor in edits.head_scale.items():
        if factor == 0:
            assert parts.heads[layer, head] == 0


@torch.inference_mode()
def test_a_patched_position_is_refused_and_those_of_a_pass_with_a_cache_count_from_its_first(model):
    model.double()
    edits = Edits(patches=(Patch("resid_mid", 1, 6, torch.ones(24)),))
    with pytest.raises(ValueError, match="position 6 was patched"):
        direct_logit_attribution(model, trace_text(model, IDS, edits=edits), 6, 33, edits=edits)
    cache, trace, idx = KVCache(model.config, dtype=torch.float64), Trace(), torch.tensor([IDS])
    model(idx[:, :4], cache=cache, edits=edits)
    logits = model(idx[:, 4:], cache=cache, edits=edits, trace=trace)
    parts = direct_logit_attribution(model, trace, 3, 33, edits=edits)
    assert parts.total == pytest.approx(logits[0, 3, 33].item(), abs=1e-9)
    with pytest.raises(ValueError, match="position 2 was patched"):
        direct_logit_attribution(model, trace, 2, 33, edits=edits)
