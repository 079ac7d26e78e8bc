"""Contributions sum to the logit, and each equals what its component adds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.testing import assert_close

from gpt.analysis.attribution import direct_logit_attribution, neuron_logit_attribution
from gpt.analysis.tracing import trace_text
from gpt.edits import Edits, Hook
from gpt.layers import LayerNorm, RMSNorm
from tests.gpt.analysis.copying_model import copying_model

IDS = [3, 1, 4, 1, 5, 9, 2, 6]


def at_constant_scale(norm: LayerNorm | RMSNorm, whole: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the decrease of norm(whole) if a part were missing but the scale unchanged."""
    mean_square = whole.square().mean() if isinstance(norm, RMSNorm) else whole.var(unbiased=False)
    mean = 0.0 if isinstance(norm, RMSNorm) else 1.0

    def normed(x: torch.Tensor) -> torch.Tensor:
        return (x - mean * x.mean()) / torch.sqrt(mean_square + norm.eps) * norm.weight

    assert_close(norm(whole), normed(whole) if norm.bias is None else normed(whole) + norm.bias)
    return lambda part: normed(whole) - normed(whole - part)


@torch.inference_mode()
def test_a_contribution_is_the_decrease_of_the_logit_without_it_at_a_constant_scale(model):
    model.double()
    trace, config, w = trace_text(model, IDS), model.config, model.lm_head.weight[33]
    parts = direct_logit_attribution(model, trace, 6, 33)
    stream = trace.layers[-1].resid_post[0, 6]
    through_final_norm = at_constant_scale(model.ln_f, stream)

    def lost(part: torch.Tensor) -> float:
        return (through_final_norm(part) @ w).item()

    for number, (block, traced) in enumerate(zip(model.h, trace.layers, strict=True)):
        c_proj, hs = block.attn.c_proj, config.head_size
        written = [
            c_proj.weight[:, hs * head : hs * head + hs]
            @ (traced.attn_weights[0, head, 6] @ traced.attn_v[0, head // (config.n_head // config.kv_heads)])
            for head in range(config.n_head)
        ]
        bias = torch.zeros(24).double() if c_proj.bias is None else c_proj.bias
        if block.ln_1_post is not None:
            added = at_constant_scale(block.ln_1_post, sum(written) + bias)
            written, bias = [added(part) for part in written], added(bias)
            bias = bias if block.ln_1_post.bias is None else bias + block.ln_1_post.bias
        assert_close(sum(written) + bias, traced.attn_out[0, 6])
        assert parts.heads[number].tolist() == pytest.approx([lost(part) for part in written], abs=1e-9)
        assert parts.attn_bias[number].item() == pytest.approx(lost(bias), abs=1e-9)
        assert parts.mlp[number].item() == pytest.approx(lost(traced.mlp_out[0, 6]), abs=1e-9)
    assert parts.embedding == pytest.approx(config.embedding_scale * lost(model.wte.weight[IDS[6]]), abs=1e-9)
    assert parts.position == pytest.approx(0 if model.wpe is None else lost(model.wpe.weight[6]), abs=1e-9)
    biases = [0.0 if model.ln_f.bias is None else (model.ln_f.bias @ w).item()]
    biases += [0.0 if model.lm_head.bias is None else model.lm_head.bias[33].item()]
    assert parts.norm_bias == pytest.approx(sum(biases), abs=1e-9)
    centred = stream if isinstance(model.ln_f, RMSNorm) else stream - stream.mean()
    assert parts.scale == pytest.approx((centred.square().mean() + config.norm_eps).sqrt().item(), abs=1e-12)


def test_only_the_copying_head_contributes_to_the_answer():
    model = copying_model()
    parts = direct_logit_attribution(model, trace_text(model, [1, 2, 3, 1]), 3, 2, against=3)
    assert parts.heads[1, 0].item() == pytest.approx(parts.logit, abs=1e-5)
    assert parts.logit > 5
    others = torch.stack((*parts.heads[0], parts.heads[1, 1], *parts.attn_bias, *parts.mlp))
    assert_close(others, torch.zeros(7), atol=1e-6, rtol=0)
    assert max(abs(parts.embedding), abs(parts.position), abs(parts.norm_bias)) < 1e-6


@torch.inference_mode()
def test_a_neuron_contributes_the_decrease_of_the_logit_without_it_at_a_constant_scale(model):
    model.double()
    trace = trace_text(model, IDS)
    with pytest.raises(ValueError, match="layer 3 does not exist"):
        neuron_logit_attribution(model, trace, 5, 33, 3)
    found = neuron_logit_attribution(model, trace, 5, 33, 2)
    assert found.neurons.shape == (model.config.ff_size,)
    norm, c_proj, layer = model.h[2].ln_2_post, model.h[2].mlp.c_proj, trace.layers[2]
    for neuron in (0, 7):
        off = Edits(hooks=(Hook("mlp_post", 2, lambda x, n=neuron: x.index_fill(-1, torch.tensor(n), 0.0)),))
        without = trace_text(model, IDS, edits=off).layers[2]
        added = layer.mlp_out[0, 5] - without.mlp_out[0, 5]
        if norm is not None:
            whole, rest = (c_proj(each.mlp_post[0, 5]) for each in (layer, without))
            added = at_constant_scale(norm, whole)(whole - rest)
        fall = at_constant_scale(model.ln_f, layer.resid_post[0, 5])(added) @ model.lm_head.weight[33]
        assert found.neurons[neuron].item() == pytest.approx(fall.item(), abs=1e-9)
