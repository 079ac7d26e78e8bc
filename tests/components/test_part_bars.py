"""Bars of a model's parts."""

from __future__ import annotations

import numpy as np
import pytest

from components.figures.palette import DARK_PARTNERS
from components.figures.part_bars import part_bars


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
