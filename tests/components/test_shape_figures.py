"""Bars of a model's parts, and what the Shapes tab says of a configuration."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from components.errors import localize_error
from components.figures.palette import DARK_PARTNERS
from components.figures.part_bars import part_bars
from components.panels.shape_settings import RANGES, shape_of, values_of
from components.tabs.shapes import views as shape_views
from gpt import PRESETS, GPTConfig
from gpt.experiments.shapes import UNTIED_124M

TINY = GPTConfig(vocab_size=97, block_size=20, n_layer=3, n_head=3, n_embd=12)


def colours(node: object, meant: bool = False) -> set[str]:
    if isinstance(node, str):
        return {node} if meant and node.startswith("#") else set()
    if isinstance(node, dict):
        return {c for key, value in node.items() for c in colours(value, "color" in key)}
    return {c for item in node for c in colours(item, meant)} if isinstance(node, list | tuple) else set()


def test_bars_show_every_number_on_one_scale_with_its_name_and_label() -> None:
    figure = part_bars(["a", "b", "c"], np.array([5, 0, 20]), ["five", "none", "twenty"], ghosts=np.array([0, 40, 0]))
    ghosts, bars, _ = figure.data
    assert list(bars.x) == [5, 0, 20]
    assert list(ghosts.x) == [0, 40, 0]
    assert tuple(figure.layout.xaxis.range) == (0, 40)
    assert [note.text for note in figure.layout.annotations] == ["a", "five", "b", "none", "c", "twenty"]


def test_a_bar_is_cut_between_its_blocks_and_stays_whole_where_there_are_too_many() -> None:
    cuts = part_bars(["a", "b", "c"], np.array([12, 8, 8]), ["", "", ""], blocks=np.array([4, 1, 1000])).data[2]
    x, y = np.array(cuts.x), np.array(cuts.y)
    assert list(x[::3]) == [3, 6, 9]
    assert np.isnan(x[2::3]).all()
    assert set(np.round(y[~np.isnan(y)])) == {0}


def test_bars_have_only_colours_with_a_dark_partner() -> None:
    used = colours(part_bars(["a"], np.array([1]), ["one"]).to_plotly_json())
    assert used
    assert used <= set(DARK_PARTNERS)


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="2 names need as many labels and bars, not 2 and 1"):
        part_bars(["a", "b"], np.array([1]), ["", ""])


def test_nothing_at_all_can_be_drawn() -> None:
    assert len(part_bars(["a"], np.array([0]), ["none"]).layout.annotations) == 2


def test_the_picture_of_the_curriculum_s_configuration_says_its_numbers() -> None:
    assert "163,009,536" in shape_views.headline(UNTIED_124M, False, "en")
    text = json.loads(shape_views.parts(UNTIED_124M, False, "en"))["text"]
    for number in ("163,009,536", "124,412,160", "[50257, 768]"):
        assert number in text
    rows = json.loads(shape_views.sizes(UNTIED_124M, False, "en"))
    assert rows[0] == ["", "float32", "bfloat16", "int8"]
    assert rows[1][1:] == ["621.83 MiB", "310.92 MiB", "155.46 MiB"]
    assert rows[2][1:] == ["72.00 KiB", "36.00 KiB", "18.00 KiB"]


@pytest.mark.parametrize("tie_weights", [True, False])
def test_tied_and_untied_totals_do_not_depend_on_which_of_them_is_shown(tie_weights: bool) -> None:
    text = json.loads(shape_views.parts(replace(UNTIED_124M, tie_weights=tie_weights), False, "zh"))["text"]
    assert "163,009,536" in text
    assert "124,412,160" in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_skeleton_outlines_what_it_leaves_out(language: str) -> None:
    figure = json.loads(shape_views.parts(TINY, True, language))["figure"]
    labels = [note["text"] for note in figure["layout"]["annotations"]]
    assert any("1,872" in label for label in labels)  # attention: 3 blocks of 4 x 144 weights and 48 biases
    assert " 0 FLOP" in shape_views.cost(TINY, True, language).replace("回看", "回看 ").replace("  ", " ")
    assert json.loads(shape_views.sizes(TINY, True, language))[2][1:] == ["0 B"] * 3


@pytest.mark.parametrize(
    "config",
    [UNTIED_124M, TINY, GPTConfig(2, 3, 1, 1, 4), replace(TINY, n_ff=7, position="rotary"), *PRESETS.values()],
    ids=str,
)
def test_the_controls_say_the_configuration_that_they_show(config: GPTConfig) -> None:
    assert shape_of(values_of(config)) == config


def test_a_wrong_combination_says_why_and_what_would_do_in_both_languages() -> None:
    given = values_of(GPTConfig()) | {"n_head": 13}
    with pytest.raises(ValueError, match=r"Width 768 must divide by 13 heads: .* 12 or 16 heads .* 767 or 780\."):
        shape_of(given)
    with pytest.raises(ValueError, match="must divide") as refused:
        shape_of(given)
    assert "宽度 768 不能被头数 13 整除" in localize_error(refused.value, "zh")
    assert "可用 12 或 16 个头" in localize_error(refused.value, "zh")
    with pytest.raises(ValueError, match=r"8 heads would do, or a width of 64\."):
        shape_of(given | {"n_embd": 8, "n_head": 64})
    with pytest.raises(ValueError, match="heads of 5, which is odd"):
        shape_of(given | {"n_embd": 60, "n_head": 12, "rotary": True})


@pytest.mark.parametrize("name", list(RANGES))
@pytest.mark.parametrize("value", [None, "12", 1.5, float("nan"), float("inf"), -1, True, [3]])
def test_what_no_control_can_say_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match="must be a whole number of at least"):
        shape_of(values_of(TINY) | {name: value})
