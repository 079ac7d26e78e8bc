import math

import pytest

from components.state.settings import LIMITS, checked_number, clamped, max_new_tokens, sampling_params
from gpt import SamplingParams


@pytest.mark.parametrize("name", LIMITS)
def test_both_ends_of_a_range_are_allowed_and_what_lies_beyond_is_refused_by_name(name):
    limit = LIMITS[name]
    assert checked_number(name, limit.low, limit.low, limit.high) == limit.low
    assert checked_number(name, limit.high, limit.low, limit.high) == limit.high
    for outside in (limit.low - 0.5, limit.high + 0.5):
        with pytest.raises(ValueError, match=name):
            checked_number(name, outside, limit.low, limit.high)


@pytest.mark.parametrize("value", [None, "1", True, math.nan, math.inf, -math.inf, [1], {}])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match="temperature"):
        checked_number("temperature", value, 0, 2)


def test_whole_numbers_may_come_as_floats_but_not_as_fractions():
    assert checked_number("top_k", 5.0, 0, 200) == 5
    with pytest.raises(ValueError, match="whole number"):
        checked_number("top_k", 5.5, 0, 200)


def test_the_values_that_mean_off_become_none():
    assert sampling_params(temperature=1) == SamplingParams(temperature=1.0)
    given = {"temperature": 0.5, "top_k": 3, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.2, "seed": 0}
    assert sampling_params(**given) == SamplingParams(**given)
    disabled = {name: limit.off for name, limit in LIMITS.items() if limit.off is not None}
    assert sampling_params(temperature=1, **disabled) == SamplingParams()


def test_a_seed_of_any_size_is_kept_exactly():
    assert sampling_params(temperature=1, seed=2**80 + 1).seed == 2**80 + 1


def test_a_number_typed_beside_a_slider_is_where_the_slider_stands():
    assert [clamped("top_k", value) for value in (2.4, 99999, -3)] == [2, 200, 0]
    assert clamped("temperature", 0.333) == 0.333
    assert max_new_tokens(12.6) == 13
    for odd in ("7", None, True, math.nan, math.inf):
        assert clamped("top_k", odd) is odd


def test_numbers_too_long_for_a_float_are_refused_with_a_sentence():
    long = 10**5000
    for name, value, written in (("temperature", long, "> 10²⁰"), ("top_k", -long, "< −10²⁰")):
        with pytest.raises(ValueError, match=f"{name} must be .*, not {written}"):
            checked_number(name, value, LIMITS[name].low, LIMITS[name].high)
    assert clamped("top_k", long) == 200
