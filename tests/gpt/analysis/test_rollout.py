"""Attention rollout: the paper's formula on transformers' attention weights, and a case by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from gpt.analysis.rollout import rollout
from gpt.analysis.tracing import trace_text
from gpt.cache import KVCache
from gpt.trace import Trace
from tests.gpt.analysis.test_heads import trace_of

T = 12


@torch.inference_mode()
def test_rollout_is_the_papers_formula_on_transformers_attentions_for_any_chunk(twins, monkeypatch):
    monkeypatch.setitem(rollout.__globals__, "QUERY_CHUNK", 5)
    shape = {"vocab_size": 61, "n_positions": 16, "n_layer": 3, "n_head": 3, "n_embd": 24}
    reference, ours = (model.double() for model in twins(**shape))
    ids = torch.randint(61, (T,)).tolist()
    trace, flow = trace_text(ours, ids), np.eye(T)
    for layer, heads in enumerate(reference(torch.tensor([ids]), output_attentions=True).attentions):
        mixed = heads[0].numpy().mean(axis=0) + np.eye(T)  # the paper adds the identity, then normalises
        flow = np.einsum("ij,jk->ik", mixed / mixed.sum(axis=-1, keepdims=True), flow)
        assert_close(rollout(trace, layer), torch.from_numpy(flow), atol=1e-12, rtol=0)
    assert torch.equal(rollout(trace), rollout(trace, 2))
    assert_close(rollout(trace).sum(dim=-1), torch.ones(T, dtype=torch.float64))


def test_rollout_of_two_previous_token_layers_is_on_the_token_two_before():
    before = torch.eye(4).roll(-1, dims=1).tril()
    before[0, 0] = 1
    flow = rollout(trace_of(before[None], before[None]))
    assert_close(flow[3], torch.tensor([0, 0.25, 0.5, 0.25]))
    assert_close(flow[1], torch.tensor([0.75, 0.25, 0, 0]))  # the first token attends only to itself
    assert_close(flow[0], torch.tensor([1.0, 0, 0, 0]))


def test_a_trace_of_a_pass_with_cached_tokens_is_refused(model):
    cache, trace = KVCache(model.config), Trace()
    idx = torch.randint(61, (1, 9))
    with torch.inference_mode():
        model(idx[:, :4], cache=cache)
        model(idx[:, 4:], cache=cache, trace=trace)
    with pytest.raises(ValueError, match="has 5 of 9 positions"):
        rollout(trace)
