"""Attention rollout: the paper's formula on transformers' attention weights, and a case by hand."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from gpt.analysis.rollout import rollout
from gpt.cache import KVCache
from gpt.trace import Trace
from tests.gpt.analysis.test_heads import trace_of


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
