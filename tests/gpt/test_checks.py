import math
from fractions import Fraction

import numpy as np
import pytest

from gpt.checks import check_choice, check_integer, check_layer, check_number, is_integer, is_number


@pytest.mark.parametrize(
    ("value", "integer", "number"),
    [
        (3, True, True),
        (np.int64(3), True, True),
        (True, False, False),
        (2.0, False, True),
        (np.float32(2), False, True),
        (Fraction(1, 3), False, True),
        (math.nan, False, False),
        (math.inf, False, False),
        (10**400, True, False),
        ("3", False, False),
        (None, False, False),
    ],
)
def test_is_integer_and_is_number_of_each_type(value: object, integer: bool, number: bool) -> None:
    assert (is_integer(value), is_number(value)) == (integer, number)


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda: check_integer("k", 0, 1), "k must be a whole number of at least 1, not 0"),
        (lambda: check_integer("k", 2.0, 1), "k must be a whole number of at least 1, not 2.0"),
        (lambda: check_integer("k", 9, 1, 8), "k must be a whole number between 1 and 8, not 9"),
        (lambda: check_number("p", math.nan, 0), "p must be a number of at least 0, not nan"),
        (lambda: check_number("p", 1.5, 0, 1), "p must be a number between 0 and 1, not 1.5"),
        (lambda: check_choice("how", [], ("a", "b")), r"how must be one of a, b, not \[\]"),
        (lambda: check_layer(-1, 3), "layer -1 does not exist: the model has layers 0 to 2"),
    ],
)
def test_a_refused_argument_is_named_with_its_value_and_limit(check, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check()


def test_limits_are_included() -> None:
    for value in (1, 8):
        check_integer("k", value, 1, 8)
        check_number("p", value, 1, 8)
