"""Log-probabilities in chunks, and the Kullback-Leibler divergence of two predictions."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from gpt.analysis import predictions
from gpt.analysis.predictions import kl_bits, kl_bits_from, kl_divergence, log_probabilities
from gpt.analysis.tracing import trace_text
from gpt.edits import Edits
from tests.gpt.analysis.copying_model import copying_model

IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]


@torch.inference_mode()
def test_chunks_of_log_probabilities_concatenate_to_those_of_the_logits(model, monkeypatch):
    monkeypatch.setattr(predictions, "MAX_CHUNK_LOGITS", 4 * 61)
    chunks = list(log_probabilities(model, model.hidden_states(torch.tensor([IDS]))[0]))
    assert [len(range(*rows.indices(11))) for rows, _ in chunks] == [len(log_p) for _, log_p in chunks] == [4, 4, 3]
    expected = model(torch.tensor([IDS]))[0].log_softmax(dim=-1)
    assert_close(torch.cat([log_p for _, log_p in chunks]), expected, atol=1e-5, rtol=0)


@torch.inference_mode()
def test_kl_bits_of_an_edited_pass_is_that_of_torch(model):
    model.double()
    idx = torch.tensor([IDS])
    edits = Edits(head_scale={(1, 1): 0.0})
    before, after = (trace_text(model, IDS, edits=e).final_norm[0] for e in (None, edits))
    p, q = (model(idx, edits=e)[0].log_softmax(dim=-1) for e in (None, edits))
    expected = F.kl_div(q, p, reduction="none", log_target=True).sum(dim=-1) / math.log(2)
    assert expected.max() > 0.01
    assert_close(kl_bits(model, before, after), expected, atol=1e-12, rtol=0)
    assert (kl_bits(model, before, before) == 0).all()


@torch.inference_mode()
def test_kl_bits_from_equals_kl_bits_in_chunks(model, monkeypatch):
    monkeypatch.setattr(predictions, "MAX_CHUNK_LOGITS", 4 * 61)
    states = torch.randn(3, 11, 24).unbind()
    kl_bits_to = kl_bits_from(model, states[0])
    for others in states:
        assert torch.equal(kl_bits_to(others), kl_bits(model, states[0], others))


@torch.inference_mode()
def test_kl_bits_against_a_uniform_distribution_over_eight_is_three_minus_the_entropy():
    model = copying_model(torch.float64)
    ids, uniform = [1, 2, 3, 1], Edits(attn_scale={1: 0.0})  # without copying, all eight tokens are equally likely
    states, uniform_states = (trace_text(model, ids, edits=e).final_norm[0, -1:] for e in (None, uniform))
    p = model(torch.tensor([ids]))[0, -1].softmax(dim=-1)
    expected = 3 + (p * p.log2()).sum()
    assert expected > 2.9
    assert_close(kl_bits(model, states, uniform_states)[0], expected, atol=1e-9, rtol=0)


def test_kl_divergence_by_hand_with_probabilities_of_zero():
    p, q = torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.25, 0.25, 0.5])
    assert kl_divergence(p.log(), q.log()) == pytest.approx(1.0)
    assert kl_divergence(q.log(), p.log()) == math.inf
    assert kl_divergence(p.log(), p.log()) == 0
    underflow = torch.tensor([0.0, -1000.0])
    assert kl_divergence(underflow, torch.tensor([0.0, -math.inf])) == 0


def test_kl_bits_of_different_shapes_is_refused(model):
    with pytest.raises(ValueError, match=r"states of shape \(3, 24\) cannot be compared with \(4, 24\)"):
        kl_bits(model, torch.zeros(3, 24), torch.zeros(4, 24))
