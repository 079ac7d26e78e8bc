"""Probability, rank, entropy and surprisal along a text."""

from __future__ import annotations

import math

import pytest
import torch

from gpt import Generation, SamplingParams
from gpt.analysis.text_statistics import TextStatistics
from tests.gpt.fake_models import bigram_model, family_model, tiny_model


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
    monkeypatch.setattr("gpt.analysis.text_statistics.MAX_CHUNK_LOGITS", 2 * 260)
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


def test_no_ids_give_empty_statistics():
    document = Generation(tiny_model(), "the cat")
    assert document.statistics() == TextStatistics(())
    document.read()
    assert document.statistics(len(document.ids)) == TextStatistics(())
    assert math.isnan(TextStatistics(()).perplexity)


def test_the_last_token_of_a_full_context_counts_too():
    document = Generation(tiny_model(block_size=4), "abcd")
    step = document.step(SamplingParams(seed=1))
    assert len(document.statistics().tokens) == 4
    assert document.statistics(4).tokens[0].probability == pytest.approx(step.probability, rel=1e-4)
