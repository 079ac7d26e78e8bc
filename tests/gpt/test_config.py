"""The configuration: presets and invalid values."""

from __future__ import annotations

import pytest

from gpt.config import GPTConfig
from gpt.presets import PRESETS


@pytest.mark.parametrize(
    ("name", "width", "heads", "layers"),
    [
        ("gpt2-medium", 1024, 16, 24),
        ("gpt2-large", 1280, 20, 36),
        ("gpt2-xl", 1600, 25, 48),
        ("distilgpt2", 768, 12, 6),
    ],
)
def test_presets_have_the_published_shapes(name, width, heads, layers):
    config = PRESETS[name]
    assert (config.n_embd, config.n_head, config.n_layer) == (width, heads, layers)
    assert config.head_size == 64
    assert config.dropout == 0.1


@pytest.mark.parametrize("name", ["vocab_size", "block_size", "n_layer", "n_head", "n_embd", "n_ff"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "12"])
def test_a_size_is_a_whole_number_of_at_least_one(name, value):
    with pytest.raises(ValueError, match=f"{name}.*at least 1, not {value!r}"):
        GPTConfig(**{name: value})


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"n_embd": 10, "n_head": 3}, r"n_embd \(10\) must be divisible by n_head \(3\)"),
        ({"dropout": 1.0}, r"dropout must be at least 0 and below 1, not 1.0"),
        ({"dropout": -0.1}, "dropout"),
        ({"dropout": float("nan")}, "dropout"),
        ({"activation": "gelu_new"}, "activation must be one of .*gelu_tanh.*, not 'gelu_new'"),
        ({"position": "sinusoidal"}, "position must be one of .*rotary.*, not 'sinusoidal'"),
        ({"qk_norm": "heads"}, "qk_norm must be one of False, True, full, not 'heads'"),
        ({"attn_softcap": 0.0}, "attn_softcap must be a number above 0, not 0.0"),
        ({"logit_softcap": -1.0}, "logit_softcap must be a number between 0.0"),
        ({"unrotated_layers": 3}, "unrotated_layers must be a list of layers, not 3"),
        ({"unrotated_layers": (12,)}, "unrotated_layers must be a whole number between 0 and 11, not 12"),
        ({"position": "rotary", "n_embd": 15, "n_head": 3}, "5 numbers per head do not form pairs"),
    ],
)
def test_invalid_configurations_are_refused_with_value_and_limit(wrong, says):
    with pytest.raises(ValueError, match=says):
        GPTConfig(**wrong)
