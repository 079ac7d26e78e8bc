"""The uniform number drawn for a seed and position, and the token it selects."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch

from gpt.sampling import SamplingParams, distribution, inverse_cdf, sample_token, uniform_draw

LAST_BELOW_ONE = 1 - 2**-53


def test_uniform_draws_of_a_seed_are_fixed():
    assert [uniform_draw(0, position) for position in range(3)] == [
        0.8336885269740499,
        0.9459165357046844,
        0.8099321172140698,
    ]
    assert uniform_draw(10**5000, 3) == 0.1765243561573243


def test_uniform_draws_are_uniform_and_differ_by_seed_and_position():
    drawn = [uniform_draw(seed, position) for seed in range(50) for position in range(200)]
    assert len(set(drawn)) == 10_000
    assert 0 <= min(drawn)
    assert max(drawn) < 1
    bins = torch.histc(torch.tensor(drawn), bins=20, min=0, max=1)
    assert ((bins - 500) ** 2 / 500).sum() < 43.8  # chi-square with 19 degrees of freedom: one in a thousand exceeds it
    assert uniform_draw(1, 23) != uniform_draw(12, 3)


@pytest.mark.parametrize(
    ("u", "token"),
    [(0.0, 2), (0.49, 2), (0.5, 0), (0.74, 0), (0.75, 3), (0.87, 3), (0.875, 4), (0.999, 4), (LAST_BELOW_ONE, 4)],
)
def test_inverse_cdf_by_hand(u, token):
    assert inverse_cdf(torch.tensor([0.25, 0.0, 0.5, 0.125, 0.125, 0.0]), u) == token


def test_inverse_cdf_is_exact_on_a_wide_flat_distribution():
    counts = torch.randint(0, 4, (5000,))  # multiples of 1/8192, so that every sum is exact
    counts[:192] += 1
    counts[7] += 8192 - counts.sum()
    probs = counts.float() / 8192
    order = sorted(range(5000), key=lambda i: (-counts[i].item(), i))
    ends, total = {}, 0
    for token in order:
        total += counts[token].item()
        if counts[token] > 0:
            ends[token] = Fraction(total, 8192)
    assert total == 8192
    checked = list(ends)[:: max(1, len(ends) // 100)] + list(ends)[-1:]
    for token in checked:
        start, end = ends[token] - Fraction(counts[token].item(), 8192), ends[token]
        assert inverse_cdf(probs, float(start)) == token
        assert inverse_cdf(probs, math.nextafter(float(end), 0.0)) == token


@pytest.mark.parametrize("vocab_size", [1, 7, 4096])
def test_sample_token_equals_inverse_cdf_of_the_final_distribution(vocab_size):
    for params in (
        SamplingParams(),
        SamplingParams(temperature=0),
        SamplingParams(0.7, top_k=5),
        SamplingParams(1.4, top_p=0.8),
        SamplingParams(0.9, top_k=40, top_p=0.95, min_p=0.02, repetition_penalty=1.2),
        SamplingParams(30.0, min_p=0.5),
    ):
        for position in range(40):
            logits = torch.randn(vocab_size).mul(2).round(decimals=1)  # with ties
            previous_ids = torch.randint(vocab_size, (9,)).tolist()
            u = uniform_draw(3, position)
            probs = distribution(logits, params, previous_ids=previous_ids).final
            assert sample_token(logits, params, u, previous_ids=previous_ids) == inverse_cdf(probs, u)
