"""Figures of the Why tab: what is drawn is what was given, and tokens stay data."""

from __future__ import annotations

import numpy as np
import pytest

from components.figures.palette import DARK_PARTNERS
from components.tabs.why.figures import lens as why_figures
from components.tabs.why.figures import parts as why_part_figures
from components.widgets.chart import chart_data
from components.widgets.encoding import to_json

HOSTILE = ["<b>bold</b>", "&amp;", "1"]
TABLE = [HOSTILE, HOSTILE]
P = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], dtype=np.float32)


def lens(**options):
    return why_figures.lens_heatmap(P, TABLE, HOSTILE, HOSTILE, tips=TABLE, **{"column": 2, "row": 1} | options)


def test_the_lens_holds_every_probability_and_every_token_as_text():
    heat = lens().data[0]
    np.testing.assert_array_equal(heat.z, P)
    assert (heat.zmin, heat.zmax) == (0, 1)
    assert [list(line) for line in heat.text] == [["&lt;b&gt;bold…", "&amp;amp;", "1"]] * 2
    assert [list(line) for line in heat.customdata] == [["&lt;b&gt;bold&lt;/b&gt;", "&amp;amp;", "1"]] * 2


def test_the_lens_frames_the_selected_column_and_in_it_the_selected_cell():
    column, cell = lens(column=1, row=0).layout.shapes
    assert (column.x0, column.x1, column.y0, column.y1) == (0.5, 1.5, -0.5, 1.5)
    assert (cell.x0, cell.x1, cell.y0, cell.y1) == (0.5, 1.5, -0.5, 0.5)
    assert cell.line.width > column.line.width


def test_the_first_layer_is_on_top_of_every_map():
    maps = (lens(), why_part_figures.head_map(P, diverging=True), why_part_figures.head_map(P, diverging=False))
    for figure in maps:
        first, last = figure.layout.yaxis.range
        assert first > last


@pytest.mark.parametrize(
    ("texts", "inputs", "outputs"), [(TABLE[:1], HOSTILE, HOSTILE), (TABLE, HOSTILE[:2], HOSTILE), (TABLE, HOSTILE, [])]
)
def test_the_lens_needs_a_text_for_each_cell_and_a_label_for_each_column(texts, inputs, outputs):
    with pytest.raises(ValueError, match="need as many"):
        why_figures.lens_heatmap(P, texts, inputs, outputs, tips=TABLE, column=0, row=0)


def test_the_lines_show_a_token_s_probability_and_rank_half_a_layer_apart_with_rank_one_on_top():
    p, rank = np.array([0.1, 0.2, 0.3, 0.4]), np.array([500, 20, 3, 1])
    upper, lower = why_figures.path_lines(p[None], rank[None], ["a", "b", "c", "d"]).data
    np.testing.assert_array_equal(upper.x, [0, 0.5, 1, 1.5])
    np.testing.assert_allclose(upper.y, p, rtol=1e-6)
    np.testing.assert_array_equal(lower.y, rank)
    axis = why_figures.path_lines(p[None], rank[None], ["a", "b", "c", "d"]).layout.yaxis2
    assert axis.type == "log"
    assert axis.range[0] > np.log10(500) > 0 > axis.range[1]


def test_the_lines_of_several_tokens_differ_in_hue_and_dash_and_need_a_value_for_each_stage():
    upper = why_figures.path_lines(np.zeros((6, 2)), np.ones((6, 2)), ["a", "b"], HOSTILE[:1] * 6).data[::2]
    assert {line.name for line in upper} == {"&lt;b&gt;bold&lt;/b&gt;"}
    assert len({line.line.color for line in upper}) == len({line.line.dash for line in upper}) == 6
    with pytest.raises(ValueError, match="need as many values"):
        why_figures.path_lines(np.zeros((1, 2)), np.ones((1, 2)), ["a", "b", "c"])


def test_bars_go_both_ways_from_zero_in_two_colours_and_send_their_heads():
    values = np.array([2.0, -1.0, 0.5])
    figure = why_figures.part_bars(HOSTILE, values, ["+2", "−1", "+½"], heads=[(3, 1), None, None], marked=1)
    bars, ends = figure.data
    np.testing.assert_array_equal(bars.x, values)
    assert bars.marker.color[0] == bars.marker.color[2] != bars.marker.color[1]
    assert list(bars.customdata) == [[3, 1], None, None]
    np.testing.assert_array_equal(ends.x, [2, 0, 0.5])  # never over the names at the left
    assert ends.textposition == "middle right"
    assert list(figure.layout.yaxis.ticktext) == ["&lt;b&gt;bold&lt;/b&gt;", "<b>&amp;amp;</b>", "1"]
    low, high = figure.layout.xaxis.range
    assert low < -1
    assert high > 2


def test_bars_need_a_name_and_an_end_for_each_value():
    with pytest.raises(ValueError, match="2 names need as many bars, not 3 and 2"):
        why_figures.part_bars(["a", "b"], np.zeros(3), ["", ""])


def test_layers_stand_after_what_no_layer_adds_in_the_order_of_the_model():
    heads, mlp = np.array([1.0, -2.0]), np.array([0.5, 3.0])
    figure = why_part_figures.layer_bars(heads, mlp, [("embedding", 0.1), ("biases", -0.2)])
    outside, attention, feed_forward = figure.data
    np.testing.assert_allclose(outside.y, [0.1, -0.2], rtol=1e-6)
    np.testing.assert_array_equal(attention.y, heads)
    np.testing.assert_array_equal(feed_forward.y, mlp)
    assert list(figure.layout.xaxis.ticktext) == ["embedding", "biases", "0", "1"]
    assert all(a < b for a, b in zip(attention.x, feed_forward.x, strict=True))
    assert min(attention.x) > max(outside.x)


def test_a_map_of_heads_is_even_around_zero_and_leaves_nothing_where_nothing_was_measured():
    values = np.array([[0.5, -2.0], [np.nan, 0.001]])
    heat = why_part_figures.head_map(values, diverging=True).data[0]
    assert (heat.zmin, heat.zmax) == (-2, 2)
    assert [list(line) for line in heat.text] == [["+0.50", "−2.00"], ["", "0.00"]]
    shares = why_part_figures.head_map(np.array([[0.05, 0.4]]), diverging=False).data[0]
    assert (shares.zmin, shares.zmax) == (0, pytest.approx(0.4))


def test_a_map_of_heads_frames_one_head_or_a_layer_and_drops_numbers_that_would_not_fit():
    head = why_part_figures.head_map(P, diverging=True, selected=(1, 2)).layout.shapes[0]
    assert (head.x0, head.x1, head.y0, head.y1) == (1.5, 2.5, 0.5, 1.5)
    layer = why_part_figures.head_map(P, diverging=True, selected=(0, None)).layout.shapes[0]
    assert (layer.x0, layer.x1, layer.y0, layer.y1) == (-0.5, 2.5, -0.5, 0.5)
    assert why_part_figures.head_map(np.zeros((48, 25)), diverging=True).data[0].text is None


def test_a_map_of_heads_needs_two_dimensions():
    with pytest.raises(ValueError, match=r"not the shape \(3,\)"):
        why_part_figures.head_map(np.zeros(3), diverging=True)


def test_every_colour_has_a_partner_on_the_dark_theme():
    figures = [
        lens(),
        why_figures.path_lines(np.ones((3, 2)), np.ones((3, 2)), ["a", "b"], HOSTILE),
        why_figures.part_bars(["a"], np.ones(1), ["1"]),
        why_part_figures.layer_bars(np.ones(1), np.ones(1), [("a", 1.0)]),
        why_part_figures.head_map(P, diverging=True, selected=(0, 0)),
    ]
    for figure in figures:
        assert set(colours(figure.to_plotly_json())) <= set(DARK_PARTNERS)


def colours(node):
    """Every hex colour of a figure."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, (list, tuple)):
        return [colour for item in node for colour in colours(item)]
    return [node] if isinstance(node, str) and node.startswith("#") else []


def test_a_lens_of_48_layers_is_less_than_160_kilobytes():
    table = [[" something"] * 16] * 48
    figure = why_figures.lens_heatmap(
        np.zeros((48, 16)), table, table[0], table[0], tips=[["what is said of a cell " * 3] * 16] * 48, column=0, row=0
    )
    assert len(to_json(chart_data(figure, "A sentence."))) < 160 * 1024
