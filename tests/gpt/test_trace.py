"""A trace contains the activations of one pass and does not change it."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from gpt.cache import KVCache
from gpt.layers import ACTIVATIONS
from gpt.model import GPT
from gpt.trace import FULL, LayerTrace, Trace

B, T, C, NH, S = 2, 7, 24, 4, 11  # four tokens are already in the cache


@pytest.fixture
def traced(model: GPT) -> tuple[GPT, torch.Tensor, Trace]:
    """Return (model, ids, trace) of one pass without a cache."""
    idx, trace = torch.randint(61, (B, S)), Trace()
    with torch.inference_mode():
        model(idx, trace=trace)
    return model, idx, trace


@torch.inference_mode()
def test_a_trace_without_attention_records_everything_else(traced):
    model, idx, trace = traced
    less = Trace(attention=False)
    model(idx, trace=less)
    for mine, whole in zip(less.layers, trace.layers, strict=True):
        for name in set(LayerTrace.__annotations__).difference(FULL):
            if name in ("attn_q", "attn_k", "attn_v", "attn_weights"):
                with pytest.raises(ValueError, match=f"{name} was not recorded"):
                    getattr(mine, name)
            else:
                assert_close(getattr(mine, name), getattr(whole, name), atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_every_activation_has_its_documented_shape(model):
    cache, trace = KVCache(model.config, batch_size=B), Trace(full=True)
    idx = torch.randint(61, (B, S))
    model(idx[:, : S - T], cache=cache)
    model(idx[:, S - T :], cache=cache, trace=trace)
    config, stream = model.config, (B, T, C)
    per_query, per_key = (B, NH, T, config.head_size), (B, config.kv_heads, S, config.head_size)
    shapes = dict.fromkeys(("resid_pre", "ln_1", "ln_2", "attn_out", "resid_mid", "mlp_out", "resid_post"), stream)
    shapes |= {
        "attn_q": per_query,
        "head_out": per_query,
        "attn_k": per_key,
        "attn_v": per_key,
        "attn_weights": (B, NH, T, S),
    }
    shapes |= dict.fromkeys(("mlp_pre", "mlp_post", *(["mlp_up"] if config.gated else [])), (B, T, config.ff_size))
    assert set(shapes) | {"mlp_up"} == set(LayerTrace.__annotations__)
    assert len(trace.layers) == 3
    for layer in trace.layers:
        assert {name: tuple(getattr(layer, name).shape) for name in shapes} == shapes
        assert layer.attn_scores.shape == (B, NH, T, S)
    assert trace.token_embedding.shape == trace.final_norm.shape == stream
    assert trace.logits.shape == (B, T, model.config.vocab_size)


@torch.inference_mode()
def test_the_residual_stream_is_the_sum_of_its_additions(traced):
    model, idx, trace = traced
    x = model.config.embedding_scale * model.wte.weight[idx]
    assert_close(trace.token_embedding, x, atol=0, rtol=0)
    if model.wpe is None:
        assert trace.position_embedding is None
    else:
        assert_close(trace.position_embedding, model.wpe.weight[:S], atol=0, rtol=0)
        x = x + trace.position_embedding
    for layer in trace.layers:
        assert_close(layer.resid_pre, x, atol=0, rtol=0)
        assert_close(layer.resid_mid, layer.resid_pre + layer.attn_out, atol=0, rtol=0)
        assert_close(layer.resid_post, layer.resid_mid + layer.mlp_out, atol=0, rtol=0)
        x = layer.resid_post
    assert_close(trace.final_norm, model.ln_f.formula(x), atol=1e-5, rtol=0)
    assert_close(model.logits(trace.final_norm), model(idx), atol=1e-5, rtol=0)


@torch.inference_mode()
def test_each_activation_follows_from_the_one_before(traced):
    model, _, trace = traced
    config, shared = model.config, NH // model.config.kv_heads
    exact = {"atol": 1e-5, "rtol": 1e-5}
    for block, layer in zip(model.h, trace.layers, strict=True):
        keys = torch.stack([layer.attn_k[:, head // shared] for head in range(NH)], dim=1)
        scores = torch.einsum("bhqd,bhkd->bhqk", layer.attn_q, keys) * config.score_scale
        if config.attn_softcap is not None:
            scores = (scores / config.attn_softcap).tanh() * config.attn_softcap
        assert_close(layer.attn_scores, scores, **exact)
        allowed = scores.exp() * (layer.attn_weights > 0)
        weights = allowed / allowed.sum(dim=-1, keepdim=True)
        assert_close(layer.attn_weights, weights, **exact)
        joined = torch.cat([weights[:, head] @ layer.attn_v[:, head // shared] for head in range(NH)], dim=-1)
        assert_close(layer.attn_out, (block.ln_1_post or torch.nn.Identity())(block.attn.c_proj(joined)), **exact)
        x = block.ln_2(layer.resid_pre if config.parallel else layer.resid_mid)
        assert_close(layer.mlp_pre, (block.mlp.c_gate or block.mlp.c_fc)(x), **exact)
        post = ACTIVATIONS[config.activation](layer.mlp_pre)
        if config.gated:
            assert_close(layer.mlp_up, block.mlp.c_fc(x), **exact)
            post = post * layer.mlp_up
        assert_close(layer.mlp_post, post, **exact)
        assert_close(layer.mlp_out, (block.ln_2_post or torch.nn.Identity())(block.mlp.c_proj(post)), **exact)


def test_traced_tensors_are_detached_and_gradients_equal_those_without_a_trace(model):
    idx, trace = torch.randint(61, (2, 9)), Trace()
    model(idx, trace=trace).logsumexp(dim=-1).sum().backward()
    traced = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    model(idx).logsumexp(dim=-1).sum().backward()
    for name, parameter in model.named_parameters():
        assert_close(traced[name], parameter.grad, atol=1e-4, rtol=1e-4)
    for layer in trace.layers:
        assert not layer.attn_weights.requires_grad
    assert not any(trace[name].requires_grad for name in trace)


def test_a_trace_is_read_by_names(traced):
    trace = traced[2]
    assert trace["layers.2.attn_q"] is trace.layers[2].attn_q
    assert trace["final_norm"] is trace.final_norm
    assert torch.equal(trace["layers.0.attn_scores"], trace.layers[0].attn_scores)
    assert set(trace) == set(trace.keys()) >= {"token_embedding", "layers.0.resid_pre", "layers.2.mlp_out"}
    assert "layers.0.ln_1" not in trace
    assert "layers.*.resid_pre" in repr(trace)
    assert str((B, S, C)) in repr(trace)
    assert repr(Trace()) == "Trace(empty)"
    for name in ("layers.3.attn_q", "layers.x.attn_q", "attn", "layers.0.attn"):
        with pytest.raises(ValueError, match=f"a trace has no '{name}'"):
            trace[name]
    with pytest.raises(ValueError, match="ln_1 was not recorded"):
        trace["layers.0.ln_1"]


def test_a_trace_with_gradients_gives_those_of_every_activation(model):
    idx = torch.randint(61, (1, 9))
    found = []
    for trainable in (True, False):
        trace = Trace(full=True, gradients=True)
        model.requires_grad_(trainable)
        model(idx, trace=trace)[0, -1].logsumexp(dim=-1).backward()
        assert {name for name in trace if trace[name].grad is None} <= {"position_embedding"}
        found.append(trace)
    with_weights, without = found
    for name in with_weights:
        if name != "position_embedding":
            assert_close(with_weights[name].grad, without[name].grad, atol=1e-5, rtol=1e-4)
    before = with_weights["layers.0.resid_post"].grad
    assert_close(with_weights["layers.1.resid_pre"].grad, before, atol=0, rtol=0)


def test_a_saved_trace_loads_unchanged(traced):
    file, trace = BytesIO(), traced[2]
    trace.save(file)
    file.seek(0)
    with np.load(file) as archive:
        np.testing.assert_array_equal(archive["layers.1.attn_weights"], trace.layers[1].attn_weights.numpy())
    file.seek(0)
    found = Trace.load(file)
    assert found.keys() == trace.keys()
    assert all(torch.equal(found[name], trace[name]) for name in trace)
    for mine, other in zip(found.layers, trace.layers, strict=True):
        assert (mine.score_scale, mine.score_cap) == (other.score_scale, other.score_cap)


@torch.inference_mode()
def test_a_saved_trace_holds_the_numbers_of_bfloat16(model, tmp_path):
    trace = Trace()
    model.bfloat16()(torch.randint(61, (1, S)), trace=trace)
    trace.save(tmp_path / "trace.npz")
    loaded = Trace.load(tmp_path / "trace.npz")
    assert loaded.final_norm.dtype == torch.float32
    assert torch.equal(loaded.layers[1].mlp_pre.bfloat16(), trace.layers[1].mlp_pre)


def test_a_file_that_is_not_a_trace_is_refused(traced, tmp_path):
    whole = BytesIO()
    traced[2].save(whole)
    cut = BytesIO(whole.getvalue()[: len(whole.getvalue()) // 2])
    numbers, pickled, other = BytesIO(), BytesIO(), BytesIO()
    np.save(numbers, np.zeros(3))
    np.savez(pickled, **{"final_norm": np.array([{"a": 1}], dtype=object)})
    np.savez(other, weights=np.zeros(3))
    for file in (cut, BytesIO(b""), BytesIO(b"not an archive"), numbers, pickled, other):
        file.seek(0)
        with pytest.raises(ValueError, match="not a trace"):
            Trace.load(file)
    with pytest.raises(FileNotFoundError):
        Trace.load(Path(tmp_path / "absent.npz"))
