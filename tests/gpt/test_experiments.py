"""The experiments of the curriculum, against the numbers that the originals printed."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from gpt.config import GPTConfig
from gpt.experiments import (
    activation_curve,
    gelu_difference,
    linear_relu_rows,
    lowest_point,
    norm_input,
    normalise,
    pre_activations,
    shortcut_gradients,
)
from gpt.experiments.linear import linear
from gpt.model import GPT
from gpt.trace import Trace

ROUNDED = {"atol": 5e-5, "rtol": 0}  # printed with four digits


def test_the_curriculums_rows_and_their_moments() -> None:
    done = normalise(linear_relu_rows())
    rows = [[0.2260, 0.3470, 0, 0.2216, 0, 0], [0.2133, 0.2394, 0, 0.5198, 0.3297, 0]]
    assert_close(done.before, torch.tensor(rows), **ROUNDED)
    assert_close(done.mean, torch.tensor([0.1324, 0.2170]), **ROUNDED)
    assert_close(done.unbiased_variance, torch.tensor([0.0231, 0.0398]), **ROUNDED)
    assert_close(done.variance, done.unbiased_variance * 5 / 6)  # six numbers a row


def test_normalised_rows_equal_torchs_layer_norm() -> None:
    rows, scale, shift = torch.randn(4, 7) * 3 + 1, torch.randn(7), torch.randn(7)
    done = normalise(rows, scale=scale, shift=shift, eps=1e-3)
    assert_close(done.after, nn.functional.layer_norm(rows, (7,), scale, shift, 1e-3))
    assert_close(done.standard, nn.functional.layer_norm(rows, (7,), None, None, 1e-3))
    assert_close(normalise(rows, scale=2.0, shift=-1.0).after, normalise(rows).standard * 2 - 1)


def test_a_row_of_equal_numbers_becomes_zero() -> None:
    assert normalise(torch.full((1, 4), 3.0)).after.tolist() == [[0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("rows", "eps", "said"),
    [(torch.ones(2, 1), 1e-5, r"C of at least 2, not \(2, 1\)"), (torch.ones(2, 3), 0.0, "eps must be above 0, not 0")],
)
def test_rows_that_cannot_be_normalised_are_refused(rows: torch.Tensor, eps: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        normalise(rows, eps=eps)


@pytest.mark.parametrize("layer", [0, 2])
def test_what_a_models_norms_read_leads_to_what_they_gave(model: GPT, layer: int) -> None:
    ids, trace = [5, 1, 60, 8], Trace()
    seen: dict[str, torch.Tensor] = {}
    for name in ("ln_1", "ln_2"):
        module = getattr(model.h[layer], name)
        module.register_forward_hook(lambda _, __, out, name=name: seen.update({name: out[0]}))
    with torch.inference_mode():
        model(torch.tensor([ids]), trace=trace)
    seen["ln_f"] = trace.final_norm[0]
    for name, expected in seen.items():
        read = norm_input(model, ids, name, layer)
        done = normalise(read.rows, scale=read.scale, shift=read.shift, eps=read.eps)
        assert_close(done.after, expected, atol=1e-5, rtol=0)


def test_a_norm_without_bias_shifts_by_nothing() -> None:
    model = GPT(GPTConfig(vocab_size=11, block_size=8, n_layer=1, n_head=1, n_embd=4, bias=False))
    assert norm_input(model, [1, 2], "ln_f").shift.tolist() == [0, 0, 0, 0]


def test_a_layer_that_the_model_does_not_have_is_refused(model: GPT) -> None:
    with pytest.raises(ValueError, match="layer 3 does not exist"):
        norm_input(model, [1], "ln_1", 3)
    with pytest.raises(ValueError, match="layer 3 does not exist"):
        pre_activations(model, [1], 3)


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


def test_one_layer_has_nothing_to_cut_short() -> None:
    found = shortcut_gradients(depth=1, width=4)
    assert found.without == found.with_shortcuts


def test_seeds_give_other_gradients_and_leave_torchs_random_numbers_alone() -> None:
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
def test_networks_that_cannot_be_are_refused(arguments: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        shortcut_gradients(**arguments)


def test_the_two_gelus_differ_as_their_formulas_do() -> None:
    for x in (-2.7, -1.0, 0.0, 0.5, 2.7):
        exact = x * (1 + math.erf(x / math.sqrt(2))) / 2
        approximate = x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
        assert gelu_difference(torch.tensor(x)).item() == pytest.approx(approximate - exact, abs=1e-7)
    difference = gelu_difference(torch.linspace(-6, 6, 1201)).abs()
    assert 4e-4 < difference.max() < 5e-4
    assert abs(-6 + difference.argmax().item() / 100) == pytest.approx(2.7, abs=0.01)


def test_silu_has_its_value_slope_and_lowest_point() -> None:
    x = torch.tensor([-2.0, 0.0, 1.5])
    curve = activation_curve("silu", x)
    sigma = [1 / (1 + math.exp(-value)) for value in x.tolist()]
    assert curve.y.tolist() == pytest.approx([v * s for v, s in zip(x.tolist(), sigma, strict=True)])
    slopes = [s * (1 + v * (1 - s)) for v, s in zip(x.tolist(), sigma, strict=True)]
    assert curve.slope.tolist() == pytest.approx(slopes)
    lowest = lowest_point("silu")  # there 1 + x (1 - sigmoid(x)) = 0, so the value is 1 + x
    assert activation_curve("silu", torch.tensor(lowest)).y.item() == pytest.approx(1 + lowest, abs=1e-6)


def test_linear_draws_torchs_default_weights_from_its_generator() -> None:
    ours = linear(3, 4, torch.Generator().manual_seed(7))
    torch.manual_seed(7)
    assert_close(ours.state_dict(), nn.Linear(3, 4).state_dict(), rtol=0, atol=0)
