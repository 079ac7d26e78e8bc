"""Log-probabilities computed in chunks, and the Kullback-Leibler divergence of two predictions."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from gpt import Generation, SamplingParams
from gpt.analysis import predictions
from gpt.analysis.predictions import kl_bits, kl_bits_from, kl_divergence, log_probabilities
from gpt.analysis.tracing import trace_text
from gpt.edits import Edits
from tests.gpt.fake_models import bigram_model, family_model, tiny_model

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


def test_kl_divergence_by_hand_with_probabilities_of_zero():
    p, q = torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.25, 0.25, 0.5])
    assert kl_divergence(p.log(), q.log()) == pytest.approx(1.0)
    assert kl_divergence(q.log(), p.log()) == math.inf
    assert kl_divergence(p.log(), p.log()) == 0
    underflow = torch.tensor([0.0, -1000.0])
    assert kl_divergence(underflow, torch.tensor([0.0, -math.inf])) == 0


def test_every_number_of_a_known_text_is_as_calculated_by_hand():
    document = Generation(
        bigram_model({5: {5: 0.5, 6: 0.25, 7: 0.25}, 6: {5: 1.0}, 7: {5: 0.125, 7: 0.875}}), [5, 5, 6, 5, 7, 5]
    )
    document.read()
    found = document.statistics()
    assert [token.probability for token in found.tokens] == pytest.approx([0.5, 0.25, 1, 0.25, 0.125])
    assert [token.surprisal for token in found.tokens] == pytest.approx([1, 2, 0, 2, 3], abs=1e-6)
    assert [token.rank for token in found.tokens] == [1, 2, 1, 2, 2]
    unsure = -(0.125 * math.log2(0.125) + 0.875 * math.log2(0.875))
    assert [token.entropy for token in found.tokens] == pytest.approx([1.5, 1.5, 0, 1.5, unsure], abs=1e-6)
    assert found.mean_surprisal == pytest.approx(8 / 5)
    assert found.perplexity == pytest.approx(2 ** (8 / 5))


def test_the_statistics_are_those_of_the_steps_and_do_not_depend_on_the_chunk(monkeypatch):
    document = Generation(tiny_model(), "the cat")
    steps = list(document.steps(SamplingParams(temperature=2.0, seed=5), 6))
    whole = document.statistics(document.n_prompt)
    for token, step in zip(whole.tokens, steps, strict=True):
        assert (token.probability, token.entropy) == (
            pytest.approx(step.probability, rel=1e-4),
            pytest.approx(step.entropy, abs=1e-4),
        )
        assert token.rank == step.rank
    monkeypatch.setattr("gpt.analysis.predictions.MAX_CHUNK_LOGITS", 2 * 260)
    parts = document.statistics(document.n_prompt)
    for a, b in zip(parts.tokens, whole.tokens, strict=True):
        assert a.surprisal == pytest.approx(b.surprisal, abs=1e-5)


@pytest.mark.parametrize("loaded", [tiny_model(), family_model("gemma2")], ids=["gpt2", "capped"])
def test_the_mean_surprisal_is_the_cross_entropy_in_bits(loaded):
    document = Generation(loaded, "the cat sat")
    document.read()
    idx = torch.tensor([document.ids])
    with torch.inference_mode():
        nats = document.loaded.model.loss(idx[:, :-1], idx[:, 1:]).item()
    assert document.statistics().mean_surprisal == pytest.approx(nats / math.log(2), abs=1e-5)
    assert document.statistics().perplexity == pytest.approx(math.exp(nats), rel=1e-4)


def test_the_last_token_of_a_full_context_counts_too():
    document = Generation(tiny_model(block_size=4), "abcd")
    step = document.step(SamplingParams(seed=1))
    assert len(document.statistics().tokens) == 4
    assert document.statistics(4).tokens[0].probability == pytest.approx(step.probability, rel=1e-4)
