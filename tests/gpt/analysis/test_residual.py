"""Norms and shares along the residual stream, and neurons whose contributions sum to their layer's output."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from gpt.analysis.residual import stream_norms, strongest_neurons
from gpt.analysis.tracing import trace_text
from gpt.layers import ACTIVATIONS
from tests.gpt.analysis.copying_model import copying_model

IDS = [3, 1, 4, 1, 5, 9, 2, 6]


def test_shares_of_orthogonal_parts_are_those_of_their_squared_norms():
    stream = stream_norms(trace_text(copying_model(), [1, 2, 3, 1]))
    assert_close(stream.resid_pre[0], torch.full((4,), 2**0.5))  # 1 for the token plus 1 for its position
    written = stream.attn_out[0].square()  # the code of the previous token
    assert (written > 1).all()
    assert_close(stream.resid_mid[0].square(), 2 + written)
    assert_close(stream.kept_share[0], 2 / (2 + written))
    assert_close(stream.attn_share[0], written / (2 + written))


@torch.inference_mode()
def test_strongest_neurons_are_ordered_by_the_norm_of_what_they_add(model):
    trace, block = trace_text(model, IDS), model.h[1]
    traced = trace.layers[1]
    neurons = strongest_neurons(model, trace, 1, 5, k=7, n_tokens=3)
    written = traced.mlp_post[0, 5, :, None] * block.mlp.c_proj.weight.T  # (n_ff, C)
    if (norm := block.ln_2_post) is not None:
        written = norm.contribution(written, norm.scale(block.mlp.c_proj(traced.mlp_post[0, 5])))
    order = written.norm(dim=1).argsort(descending=True)
    assert torch.equal(neurons.index, order[:7])
    assert_close(neurons.norm, written.norm(dim=1)[order[:7]])
    assert torch.equal(neurons.pre, traced.mlp_pre[0, 5, order[:7]])
    assert torch.equal(neurons.post, traced.mlp_post[0, 5, order[:7]])
    activated = ACTIVATIONS[model.config.activation](neurons.pre)
    assert (neurons.mlp_up is None) == (not model.config.gated)
    assert_close(neurons.post, activated if neurons.mlp_up is None else activated * neurons.mlp_up)
    assert neurons.up.shape == neurons.down_logit.shape == (7, 3)
    every = strongest_neurons(model, trace, 1, 5, k=7, n_tokens=61)
    assert_close(every.up.flip(1), every.down)  # the whole vocabulary in both orders
    assert (neurons.up_logit.min(dim=1).values > neurons.down_logit.max(dim=1).values).all()
