"""Shortcut connections: the numbers printed in the curriculum, and gradients that vanish without shortcuts."""

from __future__ import annotations

import pytest

from gpt.experiments.shortcuts import shortcut_gradients


def test_the_curriculums_ten_gradients() -> None:
    found = shortcut_gradients()
    assert found.without == pytest.approx(
        (
            0.00020173587836325169,
            0.0001201116101583466,
            0.0007152041653171182,
            0.001398873864673078,
            0.005049646366387606,
        ),
        rel=1e-6,
    )
    assert found.with_shortcuts == pytest.approx(
        (0.22169792652130127, 0.20694106817245483, 0.32896995544433594, 0.2665732502937317, 1.3258541822433472),
        rel=1e-6,
    )


def test_gradients_vanish_with_depth_and_shortcuts_keep_them() -> None:
    found = shortcut_gradients(depth=20, width=16, seed=1)
    assert len(found.without) == len(found.with_shortcuts) == 20
    assert found.without[0] < 1e-6 * found.with_shortcuts[0]
    assert found.with_shortcuts[0] > 1e-3 * found.with_shortcuts[-1]
