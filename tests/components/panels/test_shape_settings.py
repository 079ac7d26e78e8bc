"""Sentences about a configuration: its size, or why its settings are invalid."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.errors import localize_error
from components.panels.parameter_bars import parameter_bars, parameter_count, size_rows
from components.panels.shape_settings import shape_of, values_of
from components.tabs.shapes.size import TITLES
from gpt import PRESETS, GPTConfig
from gpt.experiments.shapes import UNTIED_124M
from tests.components.drawing import spoken_in
from tests.gpt.family_configs import FAMILIES

TINY = GPTConfig(vocab_size=97, block_size=20, n_layer=3, n_head=3, n_embd=12)


def test_the_picture_of_the_curriculum_s_configuration_says_its_numbers() -> None:
    assert "163,009,536" in parameter_count(UNTIED_124M, False)
    text = parameter_bars(UNTIED_124M, False)["text"]
    for number in ("163,009,536", "124,412,160", "[50257, 768]"):
        assert number in text
    rows = size_rows(UNTIED_124M, False)
    assert rows[0] == ["", "float32", "bfloat16", "int8"]
    assert rows[1][1:] == ["621.83 MiB", "310.92 MiB", "155.46 MiB"]
    assert rows[2][1:] == ["72.00 KiB", "36.00 KiB", "18.00 KiB"]


@pytest.mark.parametrize("tie_weights", [True, False])
def test_tied_and_untied_totals_do_not_depend_on_which_of_them_is_shown(tie_weights: bool) -> None:
    text = spoken_in("zh", parameter_bars, replace(UNTIED_124M, tie_weights=tie_weights), False)["text"]
    assert "163,009,536" in text
    assert "124,412,160" in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_skeleton_outlines_what_it_leaves_out(language: str) -> None:
    figure = spoken_in(language, parameter_bars, TINY, True)["figure"]
    labels = [note["text"] for note in figure["layout"]["annotations"]]
    assert any("1,872" in label for label in labels)  # attention: 3 blocks of 4 x 144 weights and 48 biases
    assert spoken_in(language, size_rows, TINY, True)[2][1:] == ["0 B"] * 3


@pytest.mark.parametrize(
    "config",
    [
        UNTIED_124M,
        TINY,
        GPTConfig(2, 3, 1, 1, 4),
        replace(TINY, n_ff=7, position="rotary"),
        *(PRESETS[name] for name in TITLES),
    ],
    ids=str,
)
def test_the_controls_say_the_configuration_that_they_show(config: GPTConfig) -> None:
    assert shape_of(values_of(config)) == config


@pytest.mark.parametrize("config", FAMILIES.values(), ids=FAMILIES)
def test_options_without_a_control_stay_as_they_were(config: GPTConfig) -> None:
    assert shape_of(values_of(config), config) == config
    moved = shape_of(values_of(config) | {"n_layer": 1, "n_kv_head": 0}, config)
    assert (moved.n_layer, moved.kv_heads, moved.qk_norm, moved.window) == (1, 4, config.qk_norm, config.window)


def test_heads_of_keys_that_cannot_be_shared_evenly_are_refused() -> None:
    given = values_of(GPTConfig())
    assert shape_of(given | {"n_kv_head": 4, "rms": True, "gated": True}) == GPTConfig(
        n_kv_head=4, norm="rms", gated=True
    )
    with pytest.raises(ValueError, match=r"12 query heads cannot share 5 .* Try 4 or 6 instead\."):
        shape_of(given | {"n_kv_head": 5})


def test_an_invalid_combination_is_explained_with_a_remedy_in_both_languages() -> None:
    given = values_of(GPTConfig()) | {"n_head": 13}
    with pytest.raises(
        ValueError, match=r"Width 768 is not divisible by 13 heads: .* 12 or 16 heads, .* 767 or 780\."
    ) as no:
        shape_of(given)
    assert "宽度 768 不能被头数 13 整除" in spoken_in("zh", localize_error, no.value)
    assert "可以改用 12 或 16 个头" in spoken_in("zh", localize_error, no.value)
    with pytest.raises(ValueError, match=r"Try 8 heads, or a width of 64\."):
        shape_of(given | {"n_embd": 8, "n_head": 64})
    with pytest.raises(ValueError, match="makes each head 5 wide, an odd number"):
        shape_of(given | {"n_embd": 60, "n_head": 12, "rotary": True})
