"""Numbers of a prediction: log-probabilities, divergence, statistics, the stages of sampling."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from gpt import Generation, SamplingParams, distribution
from gpt.analysis import predictions
from gpt.analysis.predictions import kl_bits, kl_divergence, log_probabilities, search_vocabulary
from gpt.analysis.tracing import trace_text
from gpt.edits import Edits
from gpt.sampling import StageName, cumulative_draw, inverse_cdf, sampling_stages, token_at_stages, uniform_draw
from tests.gpt.fake_models import bigram_model, tiny_model, tiny_tokenizer

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


NAMES = list(get_args(StageName))

EVERYTHING = SamplingParams(0.8, top_k=400, top_p=0.9, min_p=0.01, repetition_penalty=1.3)


def logits_of(*probabilities):
    return torch.tensor(probabilities).log()


def test_each_stage_of_a_small_distribution_is_as_calculated_by_hand():
    logits = logits_of(0.5, 0.25, 0.125, 0.0625, 0.0625)
    stages = {stage.name: stage for stage in sampling_stages(logits, SamplingParams(top_k=4, top_p=0.75, min_p=0.4))}
    assert list(stages) == NAMES
    off, top_k, top_p, min_p, final = (
        stages[name] for name in ("repetition_penalty", "top_k", "top_p", "min_p", "final")
    )
    assert (off.n_removed, off.removed_mass, off.n_kept) == (0, 0.0, 5)
    assert off.entropy_before == off.entropy_after == pytest.approx(1.875)
    assert (top_k.n_removed, top_k.n_kept, top_k.removed_mass) == (1, 4, pytest.approx(1 / 16))
    assert (top_p.n_removed, top_p.n_kept, top_p.removed_mass) == (2, 2, pytest.approx(3 / 15))
    assert top_p.entropy_after == pytest.approx(-(2 / 3) * math.log2(2 / 3) - (1 / 3) * math.log2(1 / 3))
    assert top_p.logits.softmax(dim=0).tolist() == pytest.approx([2 / 3, 1 / 3, 0, 0, 0])
    assert not min_p.n_removed  # 1/3 is more than 0.4 of 2/3
    assert (final.n_removed, final.n_kept, final.removed_mass) == (3, 2, pytest.approx(0.25))
    assert (final.entropy_before, final.entropy_after) == (pytest.approx(1.875), pytest.approx(top_p.entropy_after))


@pytest.mark.parametrize("scale", [0.5, 3.0, 30.0])
@pytest.mark.parametrize("vocab_size", [7, 3000])
def test_stages_agree_with_the_distribution_that_is_sampled(vocab_size, scale):
    logits = torch.randn(vocab_size) * scale
    logits[::5] = -math.inf
    previous_ids = torch.randint(vocab_size, (9,)).tolist()
    stages = sampling_stages(logits, EVERYTHING, previous_ids=previous_ids)
    drawn = distribution(logits, EVERYTHING, previous_ids=previous_ids)
    for stage in stages:
        torch.testing.assert_close(stage.logits.softmax(dim=0), getattr(drawn, stage.name), atol=1e-6, rtol=0)
        assert stage.n_kept == int((stage.logits > -math.inf).sum())
    assert stages[-1].entropy_after == pytest.approx(drawn.entropy, abs=1e-5)
    for before, after in pairwise(stages[:-1]):
        assert before.entropy_after == pytest.approx(after.entropy_before, abs=1e-9)
        assert after.n_kept == before.n_kept - after.n_removed
    assert stages[-1].n_removed == sum(stage.n_removed for stage in stages[:-1])


def test_one_token_has_its_rank_and_probability_at_every_stage_until_it_is_removed():
    logits = logits_of(0.5, 0.25, 0.125, 0.125)
    params = SamplingParams(temperature=0.5, top_k=2, repetition_penalty=2.0)
    stages = sampling_stages(logits, params, previous_ids=[0])
    rows = token_at_stages(logits, stages, 1)
    assert [row.stage for row in rows] == ["raw", *NAMES]
    assert rows[0].logit == pytest.approx(math.log(0.25))
    assert (rows[0].probability, rows[0].rank) == (pytest.approx(0.25), 2)
    assert (rows[1].probability, rows[1].rank) == (pytest.approx(1 / 3), 1)  # 0.5 became 0.25
    assert rows[2].logit == pytest.approx(2 * math.log(0.25))
    removed = token_at_stages(logits, stages, 3)
    assert [row.rank for row in removed[:3]] == [3, 3, 3]
    assert {row.rank for row in removed[3:]} == {None}
    assert (removed[3].logit, removed[3].probability, removed[3].log_probability) == (-math.inf, 0, -math.inf)


@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(temperature=0), EVERYTHING])
def test_cumulative_draw_and_inverse_cdf_agree_on_the_token(params):
    for position in range(30):
        final = distribution(torch.randn(3000) * 3, params).final
        draw = uniform_draw(4, position)
        found = cumulative_draw(final, draw)
        assert found.ids[found.index] == inverse_cdf(final, draw)
        assert found.bounds[0] <= draw < found.bounds[1]
        assert sorted(found.ids) == np.flatnonzero(final.numpy()).tolist()
        assert found.ends[-1] == 1
        assert (np.diff(final.numpy()[found.ids]) <= 0).all()


def test_a_search_ignores_case_and_orders_exact_matches_first_then_by_probability():
    logits = torch.zeros(260)
    logits[[ord("t"), 256, 257]] = torch.tensor([1.0, 2.0, 3.0])
    found = search_vocabulary(tiny_tokenizer(), logits, "T")
    assert found == [ord("T"), 257, 256, ord("t"), 259]  # T, the, th, t, <|endoftext|>
    assert search_vocabulary(tiny_tokenizer(), logits, "a")[:2] == [ord("a"), 258]
    assert len(search_vocabulary(tiny_tokenizer(), logits, "t", limit=2)) == 2


def test_a_search_for_digits_finds_the_id_first():
    assert search_vocabulary(tiny_tokenizer(), torch.zeros(260), "257") == [257]
    assert search_vocabulary(tiny_tokenizer(), torch.zeros(260), "9") == [9, ord("9")]
    for nothing in ("", "260", "²", "9" * 5000, "no such"):
        assert search_vocabulary(tiny_tokenizer(), torch.zeros(260), nothing) == []
