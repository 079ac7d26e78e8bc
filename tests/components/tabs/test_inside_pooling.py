"""Pooling of vectors and weights into pixels."""

from __future__ import annotations

import numpy as np
import pytest

from components.tabs.inside.pooling import pool_mean, pool_strongest
from components.widgets.flow import packed
from components.widgets.heads import BUDGET, max_pooled, thumbnail_side
from tests.components.tabs.inside_session import unpacked


def test_thumbnails_keep_the_largest_weight_and_fit_their_budget() -> None:
    weights = np.random.default_rng(0).random((2, 100, 100)).astype(np.float32)
    np.testing.assert_array_equal(max_pooled(weights, 25), weights.reshape(2, 25, 4, 25, 4).max(axis=(2, 4)))
    assert thumbnail_side(4, 4, 20) == 20
    for n_layer, n_head in ((1, 1), (12, 12), (48, 25)):
        side = thumbnail_side(n_layer, n_head, 1024)
        assert n_layer * n_head * side * (side + 1) / 2 <= BUDGET


@pytest.mark.parametrize(("value", "level"), [(-2.0, 0), (-1.0, 0), (0.0, 128), (1.0, 255), (9.0, 255)])
def test_zero_is_the_middle_of_the_colours(value: float, level: int) -> None:
    assert unpacked(packed(np.array([value]), 1.0), "u1", 1)[0] == level


def test_pooling_covers_every_number_once() -> None:
    np.testing.assert_allclose(pool_mean(np.arange(10, dtype=np.float32)[None], 4), [[0.5, 3.0, 5.5, 8.0]])
    np.testing.assert_allclose(pool_strongest(np.array([[1.0, -3.0, 2.0, 0.5]]), 2), [[-3.0, 2.0]])
