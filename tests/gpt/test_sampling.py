"""Sampling stages. Equality with transformers is in tests/parity, the draw in test_sampling_draw.py."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from gpt.sampling import (
    LIKELY,
    SamplingParams,
    distribution,
    likely_edge,
    sample_token,
    sorted_edge,
)


def logits_of(*probabilities: float) -> torch.Tensor:
    return torch.tensor(probabilities).log()


def final(logits: torch.Tensor, previous_ids=(), **params) -> list[float]:
    return distribution(logits, SamplingParams(**params), previous_ids=previous_ids).final.tolist()


# The effect of each stage, by hand


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [0.4, 0.3, 0.2, 0.1]),
        ({"temperature": 0.5}, [16 / 30, 9 / 30, 4 / 30, 1 / 30]),  # squared
        ({"temperature": 0}, [1, 0, 0, 0]),
        ({"top_k": 2}, [4 / 7, 3 / 7, 0, 0]),
        ({"top_k": 4}, [0.4, 0.3, 0.2, 0.1]),
        ({"top_k": 99}, [0.4, 0.3, 0.2, 0.1]),
        ({"top_p": 0.6}, [4 / 7, 3 / 7, 0, 0]),
        ({"top_p": 0.75}, [4 / 9, 3 / 9, 2 / 9, 0]),
        ({"top_p": 0.001}, [1, 0, 0, 0]),
        ({"top_p": 1e-12}, [1, 0, 0, 0]),
        ({"top_p": 1.0}, [0.4, 0.3, 0.2, 0.1]),
        ({"min_p": 0.6}, [4 / 7, 3 / 7, 0, 0]),
        ({"min_p": 0.0}, [0.4, 0.3, 0.2, 0.1]),
        ({"min_p": 1.0}, [1, 0, 0, 0]),
        ({"top_k": 2, "top_p": 0.5}, [1, 0, 0, 0]),  # in the reverse order, two would remain
        ({"top_p": 0.6, "min_p": 0.76}, [1, 0, 0, 0]),
        ({"temperature": 0.5, "top_p": 0.5}, [1, 0, 0, 0]),  # in the reverse order, two would remain
    ],
)
def test_stages_of_a_small_distribution_by_hand(params, expected):
    assert final(logits_of(0.4, 0.3, 0.2, 0.1), **params) == pytest.approx(expected, abs=1e-6)


# Properties


def large_logits(kind: str, seed: int) -> np.ndarray:
    """Return float32 logits, (20000,)."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(20_000).astype(np.float32)
    if kind == "peaked":
        return noise - 1.5 * np.log(1 + rng.permutation(20_000)).astype(np.float32)
    if kind == "removed":
        return np.where(rng.random(20_000) < 0.9, np.float32(-math.inf), 3 * noise)
    return {"wide": 3 * noise, "flat": noise / 10, "equal": 0 * noise, "ties": (3 * noise).round()}[kind]


@pytest.mark.parametrize("n_seeds", [1, pytest.param(10, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("kind", ["peaked", "wide", "removed", "ties", "flat", "equal"])
def test_top_p_from_the_likely_tokens_is_that_of_the_sorted_vocabulary(kind, n_seeds):
    n_found = 0
    for seed in range(n_seeds):
        logits = large_logits(kind, seed)
        cumulative = np.sort(logits)[::-1].astype(np.float64)
        cumulative = np.exp(cumulative - cumulative[0]).cumsum() / np.exp(cumulative - cumulative[0]).sum()
        at_edges = cumulative[[0, 1, 10, 100, 1000, LIKELY - 1, LIKELY]]  # values of p at which rounding decides
        for p in (0.01, 0.3, 0.5, 0.9, 0.95, 0.99, *(float(edge) for edge in at_edges if edge < 1)):
            found, expected = likely_edge(logits, p), sorted_edge(logits, p)
            assert found in (None, expected)
            n_found += found is not None
            kept = distribution(torch.from_numpy(logits), SamplingParams(top_p=p)).kept
            best_first = np.argsort(-logits, kind="stable")[: expected[1]]
            assert kept.nonzero().flatten().tolist() == sorted(best_first.tolist())
    assert n_found >= (3 * n_seeds if kind in ("peaked", "wide", "removed") else 0)


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


def test_logits_are_unchanged_and_may_have_any_float_dtype():
    logits = torch.randn(61)
    before = logits.clone()
    stages = distribution(
        logits, SamplingParams(0.7, top_k=9, top_p=0.9, min_p=0.05, repetition_penalty=1.5), previous_ids=[1, 2]
    )
    stages.raw.zero_()
    assert torch.equal(logits, before)
    half = distribution(logits.bfloat16().requires_grad_(), SamplingParams()).raw
    assert_close(half, logits.bfloat16().float().softmax(dim=0))


# Rejected values


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("temperature", value) for value in (-0.1, math.inf, math.nan, None, "1", True, 10**400)),
        *(("top_k", value) for value in (-1, 2.0, "5", True)),
        *(("top_p", value) for value in (0, -0.1, 1.01, math.nan, "0.9", True)),
        *(("min_p", value) for value in (-0.01, 1.01, math.nan, "0", False)),
        *(("repetition_penalty", value) for value in (0, -1, math.inf, math.nan, "1", True)),
        *(("seed", value) for value in (-1, 1.5, "7", True)),
    ],
)
def test_a_setting_out_of_range_is_refused_with_name_and_value(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be .*, not {value!r}$"):
        SamplingParams(**{name: value})


def test_a_top_k_of_0_is_off_as_in_the_api():
    assert SamplingParams(top_k=0) == SamplingParams()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(temperature=0)])
def test_logits_that_are_not_finite_are_refused(bad, params):
    for logits in (torch.tensor([0.0, bad, -math.inf]), torch.full((3,), -math.inf)):
        for call in (lambda x: distribution(x, params), lambda x: sample_token(x, params, 0.5)):
            with pytest.raises(ValueError, match="logits must be finite or -inf"):
                call(logits)


@pytest.mark.parametrize("wrong", [-1, 5])
def test_an_earlier_id_outside_the_vocabulary_is_refused(wrong):
    for other in ([0.5], ["a"], [10**30]):
        with pytest.raises(ValueError, match="previous_ids must be token ids, which are whole numbers"):
            distribution(torch.zeros(5), SamplingParams(repetition_penalty=1.1), previous_ids=other)
    with pytest.raises(ValueError, match=f"token id {wrong} does not exist: the vocabulary has ids 0 to 4"):
        distribution(torch.zeros(5), SamplingParams(repetition_penalty=1.1), previous_ids=[2, wrong])
