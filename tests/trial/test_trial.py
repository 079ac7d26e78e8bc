"""A tenth of the work of `python -m benchmarks.trial`."""

from __future__ import annotations

import pytest

from benchmarks.trial import TRIALS


@pytest.mark.trial
@pytest.mark.parametrize("name", list(TRIALS))
def test_nothing_fails_in_a_tenth_of_a_trial(name: str) -> None:
    result = TRIALS[name](0.1)
    assert result.failures == ()
    assert result.n > 0
