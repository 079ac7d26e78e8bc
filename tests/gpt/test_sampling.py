"""Sampling stages and the draw. Equality with transformers is in tests/parity."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from gpt.sampling import SamplingParams, distribution, inverse_cdf, sample, uniform_draw


def logits_of(*probabilities: float) -> torch.Tensor:
    return torch.tensor(probabilities).log()


def final(logits: torch.Tensor, previous_ids=(), **params) -> list[float]:
    return distribution(logits, SamplingParams(**params), previous_ids=previous_ids).final.tolist()


# The effect of each stage, by hand
@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"temperature": 0.5}, [16 / 30, 9 / 30, 4 / 30, 1 / 30]),  # squared
        ({"temperature": 0}, [1, 0, 0, 0]),
        ({"top_k": 99}, [0.4, 0.3, 0.2, 0.1]),
        ({"top_p": 0.75}, [4 / 9, 3 / 9, 2 / 9, 0]),
        ({"top_p": 1e-12}, [1, 0, 0, 0]),
        ({"top_p": 1.0}, [0.4, 0.3, 0.2, 0.1]),
        ({"min_p": 0.6}, [4 / 7, 3 / 7, 0, 0]),
        ({"min_p": 1.0}, [1, 0, 0, 0]),
        ({"top_k": 2, "top_p": 0.5}, [1, 0, 0, 0]),  # in the reverse order, two would remain
        ({"top_p": 0.6, "min_p": 0.76}, [1, 0, 0, 0]),
        ({"temperature": 0.5, "top_p": 0.5}, [1, 0, 0, 0]),  # in the reverse order, two would remain
    ],
)
def test_stages_of_a_small_distribution_by_hand(params, expected):
    assert final(logits_of(0.4, 0.3, 0.2, 0.1), **params) == pytest.approx(expected, abs=1e-6)


def test_ties_go_to_the_lower_id():
    assert final(torch.zeros(5), top_k=2) == [0.5, 0.5, 0, 0, 0]
    assert final(torch.zeros(8), top_p=0.3) == pytest.approx([1 / 3] * 3 + [0] * 5)
    assert final(torch.tensor([1.0, 3.0, 3.0]), temperature=0) == [0, 1, 0]


def test_entropy_is_in_bits():
    params = SamplingParams()
    assert distribution(logits_of(0.5, 0.25, 0.125, 0.125), params).entropy == pytest.approx(1.75, abs=1e-6)
    assert distribution(torch.zeros(1024), params).entropy == pytest.approx(10, abs=1e-5)
    assert distribution(torch.randn(9), SamplingParams(temperature=0)).entropy == 0
    assert distribution(torch.zeros(1024), SamplingParams(top_k=8)).entropy == pytest.approx(3, abs=1e-6)


def test_a_temperature_near_zero_is_greedy_and_a_huge_one_is_uniform():
    logits = torch.tensor([1.0, 1.1, -math.inf, 5e37])
    assert final(logits, temperature=1e-300) == [0, 0, 0, 1]
    assert final(logits, temperature=1e300) == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3])


# Rejected values
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("temperature", (-0.1, math.inf, math.nan, None, "1", True, 10**400)),
        ("top_k", (-1, 2.0, "5", True)),
        ("top_p", (0, -0.1, 1.01, math.nan, "0.9", True)),
        ("min_p", (-0.01, 1.01, math.nan, "0", False)),
        ("repetition_penalty", (0, -1, math.inf, math.nan, "1", True)),
        ("seed", (-1, 1.5, "7", True)),
        ("repetition_window", (0, 1.5, True)),
    ],
)
def test_a_setting_out_of_range_is_refused_with_name_and_value(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"^{name} must be .*, not {value!r}$"):
            SamplingParams(**{name: value})


def test_a_top_k_of_0_is_off_as_in_the_api():
    assert SamplingParams(top_k=0) == SamplingParams()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("params", [SamplingParams(seed=1), SamplingParams(temperature=0, seed=1)])
def test_logits_that_are_not_finite_are_refused(bad, params):
    for logits in (torch.tensor([0.0, bad, -math.inf]), torch.full((3,), -math.inf)):
        for call in (lambda x: distribution(x, params), lambda x: sample(x, params, position=0)):
            with pytest.raises(ValueError, match="logits must be finite or -inf"):
                call(logits)


@pytest.mark.parametrize("wrong", [-1, 5])
def test_an_earlier_id_outside_the_vocabulary_is_refused(wrong):
    with pytest.raises(ValueError, match=f"token id {wrong} does not exist: the vocabulary has ids 0 to 4"):
        distribution(torch.zeros(5), SamplingParams(repetition_penalty=1.1), previous_ids=[2, wrong])


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


@pytest.mark.parametrize("vocab_size", [1, 7, 4096])
def test_a_sample_is_the_inverse_cdf_of_the_final_distribution(vocab_size):
    for params in (
        SamplingParams(),
        SamplingParams(temperature=0),
        SamplingParams(0.7, top_k=5),
        SamplingParams(1.4, top_p=0.8),
        SamplingParams(0.9, top_k=40, top_p=0.95, min_p=0.02, repetition_penalty=1.2),
        SamplingParams(30.0, min_p=0.5),
        SamplingParams(2.0, min_p=0.1, repetition_penalty=1.5, repetition_window=2, temperature_last=True),
        SamplingParams(0.0, top_k=5, temperature_last=True),
    ):
        for position in range(12):
            logits = torch.randn(vocab_size).mul(2).round(decimals=1)  # with ties
            previous_ids = torch.randint(vocab_size, (9,)).tolist()
            probs = distribution(logits, params, previous_ids=previous_ids).final
            draw = sample(logits, replace(params, seed=3), position=position, previous_ids=previous_ids)
            assert draw.token_id == inverse_cdf(probs, uniform_draw(3, position))
