import math
from fractions import Fraction

import numpy as np
import pytest

from gpt.checks import is_integer, is_number


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
