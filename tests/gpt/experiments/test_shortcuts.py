"""Shortcut connections: the numbers printed in the curriculum, and gradients that vanish without shortcuts."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from gpt.experiments.initialisation import linear
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


@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu", "relu", "silu"])
def test_gradients_vanish_with_depth_and_shortcuts_keep_them(activation: str) -> None:
    found = shortcut_gradients(depth=20, width=16, seed=1, activation=activation)
    assert len(found.without) == len(found.with_shortcuts) == 20
    assert found.without[0] < 1e-6 * found.with_shortcuts[0]
    assert found.with_shortcuts[0] > 1e-3 * found.with_shortcuts[-1]


def test_shortcuts_do_not_change_a_network_of_one_layer() -> None:
    found = shortcut_gradients(depth=1, width=4)
    assert found.without == found.with_shortcuts


def test_the_seed_determines_the_gradients_and_torchs_global_generator_is_not_used() -> None:
    state = torch.get_rng_state()
    first, again, other = (shortcut_gradients(seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"depth": 0}, "depth must be a whole number of at least 1, not 0"),
        ({"width": 0}, "width must be a whole number of at least 1, not 0"),
        ({"activation": "tanh"}, "activation must be one of .* not 'tanh'"),
    ],
)
def test_invalid_networks_are_refused(arguments: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        shortcut_gradients(**arguments)


def test_linear_draws_torchs_default_weights_from_its_generator() -> None:
    ours = linear(3, 4, torch.Generator().manual_seed(7))
    torch.manual_seed(7)
    assert_close(ours.state_dict(), nn.Linear(3, 4).state_dict(), rtol=0, atol=0)
