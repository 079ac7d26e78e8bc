"""Figures: plotly accepts them, they draw what they are given, tokens stay data, and updates are small."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from plotly.graph_objects import Figure

from components.figures import bars, lines, maps
from components.figures.palette import DARK_PARTNERS
from components.figures.style import names_axis, token_label
from components.widgets.chart import chart_data
from components.widgets.widget import to_json

NAMES = {"before_name": "before", "after_name": "after", "chosen_name": "chosen"}
AXES = {"x_title": "x", "y_title": "y"}
ATTENTION = {"query_title": "query", "key_title": "key", "weight_title": "weight"}
PANELS = {"function_title": "f(x)", "slope_title": "slope", "flat_name": "slope 0"}
MAP = {"layer_title": "layer", "value_title": "value"}
PATHS = {"layer_title": "layer", "probability_title": "probability", "rank_title": "rank"}
PARTS = {"attention_name": "attention", "feed_forward_name": "feed-forward"} | MAP
HOSTILE = ["<b>bold</b>", "&amp;", "1", "", " \n\t"]
THREE = HOSTILE[:3]
P = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], dtype=np.float32)
X = np.linspace(-3, 3, 241)


def shown(labels: list[str]) -> list[str]:
    """Return the tick labels with which plotly shows those tokens."""
    return [token_label(label) for label in labels]


def causal(n: int, cached: int = 0) -> np.ndarray:
    """Return random attention weights (n, n + cached) whose rows each sum to 1 over the visible keys."""
    weights = np.tril(np.random.default_rng(n).random((n, n + cached)) + 1e-3, k=cached).astype(np.float32)
    return weights / weights.sum(axis=1, keepdims=True)


def next_tokens(labels: list[str], before: list[float], after: list[float], **options: int | None) -> Figure:
    return Figure(bars.next_token_bars(labels, np.array(before), np.array(after), **NAMES, **options))


def heatmap(weights: np.ndarray, **options: int) -> Figure:
    n_query, n_key = weights.shape
    return Figure(maps.attention_heatmap(weights, ["q"] * n_query, ["k"] * n_key, **ATTENTION, **options))


def heads(values: np.ndarray, **options: object) -> Figure:
    return Figure(maps.head_map(values, head_title="head", **MAP, **{"diverging": True} | options))


def lens(**options: int) -> Figure:
    place = {"column": 2, "row": 1} | options
    return Figure(maps.lens_heatmap(P, [THREE] * 2, THREE, THREE, tips=[THREE] * 2, **place, **MAP))


def activations(names: tuple[str, ...] = ("a",), at: float = 0.0) -> Figure:
    return Figure(
        lines.activation_curves(X, dict.fromkeys(names, X), dict.fromkeys(names, X), at=at, flat=0.0, **PANELS)
    )


# Properties of all figures

EVERY = {
    "next tokens": next_tokens(["a"], [1.0], [1.0]),
    "sizes": Figure(bars.size_bars(["a"], np.array([1]), ["one"])),
    "signed": Figure(bars.signed_bars(["a"], np.ones(1), ["1"], title="cosine", full=1.0)),
    "layers": Figure(bars.layer_bars(np.ones(1), np.ones(1), [("a", 1.0)], **PARTS)),
    "divergence": Figure(bars.divergence_bars({"": np.ones(2)}, ["a", "b"], selected=0, bits_title="bits")),
    "groups": Figure(bars.grouped_bars(["a"], {"one": np.ones(1), "two": np.zeros(1)}, log=True, digits=".2g")),
    "four groups": Figure(bars.grouped_bars(["a"], {name: np.ones(1) for name in "abcd"})),
    "stack": Figure(bars.stacked_bars(["a"], {name: np.ones(1) for name in "abc"}, **AXES)),
    "shares": Figure(bars.share_bars({name: np.full(3, 1 / 3) for name in "abc"}, layer=1, **AXES)),
    "histogram": Figure(bars.histogram(np.ones(2), np.arange(3), **AXES)),
    "rows": Figure(bars.row_bars(P, ["a", "b"], P.mean(axis=1), P.std(axis=1), place_title="place")),
    "merges": Figure(bars.merge_ladder([[bars.Cell("a", 1), bars.Cell("b", 1)], [bars.Cell("ab", 2, True, "c")]])),
    "lines": Figure(lines.lines(X, {"a": X}, **AXES, level_at=("floor", 1.0), mark=("here", 0.0))),
    "logarithmic": Figure(lines.lines(np.array([1, 2]), {"a": np.array([1, 9])}, **AXES, log_x=True, log_y=True)),
    "tokens": Figure(lines.lines(np.arange(3), {"a": np.ones(3)}, **AXES, ticks=THREE)),
    "paths": Figure(lines.path_lines(np.ones((3, 2)), np.ones((3, 2)), ["a", "b"], THREE, **PATHS)),
    "stages": Figure(
        lines.stage_lines(["a"], [1], np.array([[1.0, np.nan]]), [""], stages=["x", "y"], followed=0, title="t")
    ),
    "activations": activations(),
    "circles": Figure(lines.circles([lines.Hands("a", 1.0, 2.0)], "query", "key")),
    "attention": heatmap(causal(8), selected=3),
    "lens": lens(),
    "recovery": Figure(maps.recovery_heatmap(P, THREE, THREE, cell=(1, 0), **MAP)),
    "heads": heads(P, selected=(0, 0)),
    "grid": Figure(maps.grid(P - 0.3, x_title="number", y_title="place")),
    "similarity": Figure(maps.similarity_heatmap(np.eye(4), np.arange(4), title="position", value="cosine")),
}


@pytest.mark.parametrize("figure", EVERY.values(), ids=EVERY)
def test_every_colour_has_a_partner_on_the_dark_theme_and_no_figure_carries_a_template(figure: Figure) -> None:
    content = json.loads(figure.to_json())
    assert set(colours(content)) <= set(DARK_PARTNERS)
    assert len(json.dumps(content["layout"]["template"])) < 64


@pytest.mark.parametrize("keep", [None, 7, 6, 1])
def test_an_axis_with_room_for_some_names_has_the_first_and_the_selected_one(keep: int | None) -> None:
    shown = names_axis(list("abcdefgh"), most=4, keep=keep)["tickvals"]
    assert shown[0] == (1 if keep == 1 else 0)  # the two would overlap
    assert keep is None or keep in shown
    assert len(shown) <= 5


def colours(node: object) -> list[str]:
    """Return every hex colour of a figure."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        return [colour for item in node for colour in colours(item)]
    return [node] if isinstance(node, str) and node.startswith("#") else []


def test_figures_know_neither_gradio_nor_torch() -> None:
    code = "import sys, components.figures.maps; print({'gradio', 'torch', 'gpt'} & set(sys.modules) or 'none')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "none"


def test_labels_show_whitespace_and_keep_markup_as_text() -> None:
    assert shown([" a b", "\n", "<b>", "a&b"]) == ["·a·b", "⏎", "&lt;b&gt;", "a&amp;b"]
    assert token_label("<" * 40) == "&lt;" * 13 + "…"


# Bars


def test_bars_hold_the_probabilities_in_order_at_integer_places() -> None:
    before, after = [0.5, 0.3, 0.2, 0.0, 0.0], [0.7, 0.3, 0.0, 0.0, 0.0]
    figure = next_tokens(HOSTILE, before, after, chosen=1)
    pale, strong = figure.data[:2]
    np.testing.assert_allclose(pale.x, before, rtol=1e-6)
    np.testing.assert_allclose(strong.x, after, rtol=1e-6)
    assert list(pale.y) == list(strong.y) == list(figure.layout.yaxis.tickvals) == [0, 1, 2, 3, 4]
    texts = list(figure.layout.yaxis.ticktext)
    assert texts[1] == "<b>&amp;amp;</b>"  # only the chosen one is bold
    assert [texts[0], *texts[2:]] == shown([HOSTILE[0], *HOSTILE[2:]])
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first one is at the top


def test_bars_say_their_change_in_words() -> None:
    figure = next_tokens(["a", "b", "c"], [0.41, 0.032, 1e-6], [0.58, 0.032, 0.0])
    said = [text.replace("\u00a0", " ").strip() for text in figure.data[3].text]
    assert said == ["41% → 58%", "3%", "under 1% → 0%"]


def test_the_chosen_bar_is_marked_by_a_sign_and_not_by_colour_alone_and_the_legend_does_not_jump() -> None:
    marked, plain = (next_tokens(["a", "b", "c"], [1 / 3] * 3, [1 / 3] * 3, chosen=row) for row in (2, None))
    assert (list(marked.data[2].y), list(plain.data[2].y)) == ([2], [None])
    assert marked.data[2].name == "chosen"
    assert [[trace.showlegend for trace in figure.data] for figure in (marked, plain)] == [
        [None, None, True, False]
    ] * 2


def test_twenty_bars_are_less_than_four_kilobytes() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(20))
    figure = bars.next_token_bars([" something"] * 20, p, p**2, chosen=3, **NAMES)
    assert len(to_json(chart_data(figure, "A sentence of some length."))) < 4096


def test_sizes_have_one_scale_and_a_name_and_a_label_above() -> None:
    three = ["a", "b", "c"], np.array([5, 0, 20]), ["five", "none", "twenty"]
    figure = Figure(bars.size_bars(*three, ghosts=np.array([0, 40, 0])))
    ghosts, filled, _ = figure.data
    assert list(filled.x) == [5, 0, 20]
    assert list(ghosts.x) == [0, 40, 0]
    assert tuple(figure.layout.xaxis.range) == (0, 40)
    assert [note.text for note in figure.layout.annotations] == ["a", "five", "b", "none", "c", "twenty"]


def test_a_size_is_cut_between_its_blocks_and_stays_whole_where_there_are_too_many() -> None:
    figure = bars.size_bars(["a", "b", "c"], np.array([12, 8, 8]), ["", "", ""], blocks=np.array([4, 1, 1000]))
    cuts = Figure(figure).data[2]
    x, y = np.array(cuts.x), np.array(cuts.y)
    assert list(x[::3]) == [3, 6, 9]
    assert np.isnan(x[2::3]).all()
    assert set(np.round(y[~np.isnan(y)])) == {0}


def test_bars_go_both_ways_from_zero_in_two_colours_and_send_their_heads() -> None:
    values = np.array([2.0, -1.0, 0.5])
    figure = Figure(bars.signed_bars(THREE, values, ["+2", "−1", "+½"], heads=[(3, 1), None, None], marked=1))
    sides, ends = figure.data
    np.testing.assert_array_equal(sides.x, values)
    assert sides.marker.color[0] == sides.marker.color[2] != sides.marker.color[1]
    assert list(sides.customdata) == [[3, 1], None, None]
    np.testing.assert_array_equal(ends.x, [2, 0, 0.5])  # never on top of the names at the left
    assert ends.textposition == "middle right"
    assert list(figure.layout.yaxis.ticktext) == ["&lt;b&gt;bold&lt;/b&gt;", "<b>&amp;amp;</b>", "1"]
    low, high = figure.layout.xaxis.range
    assert low < -1
    assert high > 2


def test_layers_stand_after_what_no_layer_adds_in_the_order_of_the_model() -> None:
    attention, mlp = np.array([1.0, -2.0]), np.array([0.5, 3.0])
    figure = Figure(bars.layer_bars(attention, mlp, [("embedding", 0.1), ("biases", -0.2)], **PARTS))
    outside, left, right = figure.data
    np.testing.assert_allclose(outside.y, [0.1, -0.2], rtol=1e-6)
    np.testing.assert_array_equal(left.y, attention)
    np.testing.assert_array_equal(right.y, mlp)
    assert list(figure.layout.xaxis.ticktext) == ["embedding", "biases", "0", "1"]
    assert all(a < b for a, b in zip(left.x, right.x, strict=True))
    assert min(left.x) > max(outside.x)


def test_an_infinite_divergence_reaches_the_top_with_its_sign() -> None:
    series = {"raw": np.array([0.5, 2.0, 0.0]), "final": np.array([1.0, math.inf, 3.0])}
    figure = Figure(bars.divergence_bars(series, ["a", "<b>", " c"], selected=1, first=4, bits_title="bits"))
    top = figure.layout.yaxis.range[1]
    assert list(figure.data[0].y) == [0.5, 2.0, 0.0]
    assert list(figure.data[1].y) == pytest.approx([1.0, top, 3.0])
    assert list(figure.data[1].text) == ["", "∞", ""]
    assert figure.data[1].customdata[1] == "&lt;b&gt;  5: ∞ bits"
    assert figure.layout.xaxis.ticktext == ("a", "&lt;b&gt;", "·c")
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (0.5, 1.5)


@pytest.mark.parametrize("log", [True, False])
def test_groups_of_bars_have_no_bar_for_zero_on_a_logarithmic_axis(log: bool) -> None:
    groups = {"one": np.array([1.0, 0.0]), "two": np.array([0.5, 3.0])}
    figure = Figure(bars.grouped_bars(["a", "<b>"], groups, log=log))
    assert [trace.name for trace in figure.data] == ["one", "two"]
    assert bool(np.isnan(figure.data[0].y[1])) == log
    assert figure.layout.xaxis.ticktext == ("a", "&lt;b&gt;")


def test_the_spread_of_stacked_bars_is_a_line_on_each() -> None:
    parts = {"one": np.array([1.0, 2.0]), "two": np.array([3.0, 4.0])}
    spread = np.array([3.5, 6.0]), np.array([5.0, 6.5])
    figure = Figure(bars.stacked_bars(["a", "<b>"], parts, spread=spread, highest=9, **AXES))
    assert figure.layout.barmode == "stack"
    assert figure.layout.xaxis.ticktext == ("a", "&lt;b&gt;")
    ends = figure.data[2].y.reshape(2, 3)
    assert ends[:, :2].tolist() == [[3.5, 5.0], [6.0, 6.5]]
    assert np.isnan(ends[:, 2]).all()


def test_a_histogram_puts_each_count_between_its_edges_on_the_curves_axis() -> None:
    counts, edges = np.histogram([-2.5, -2.4, 0.1, 2.9], bins=6, range=(-3, 3))
    figure = Figure(bars.histogram(counts, edges, **AXES))
    upright = figure.data[0]
    assert list(upright.y) == [2, 0, 0, 1, 0, 1]
    np.testing.assert_allclose(upright.x - upright.width / 2, edges[:-1], atol=1e-6)
    np.testing.assert_allclose(upright.x + upright.width / 2, edges[1:], atol=1e-6)
    curves = activations()
    assert figure.layout.xaxis.range == curves.layout.xaxis.range == (-3.0, 3.0)
    assert (figure.layout.margin.l, figure.layout.margin.r) == (curves.layout.margin.l, curves.layout.margin.r)


# Lines


def test_curves_print_the_values_at_x_and_mark_the_flat_place() -> None:
    curves = {"square": X**2, "ReLU <b>": np.maximum(X, 0)}
    slopes = {"square": 2 * X, "ReLU <b>": (X > 0).astype(float)}
    figure = Figure(lines.activation_curves(X, curves, slopes, at=-1.5, flat=0.0, **PANELS))
    readouts = [trace.name for trace in figure.data if trace.showlegend]
    assert readouts == [
        "square <b>+2.2500</b> · slope <b>−3.0000</b>",
        "ReLU &lt;b&gt; <b>+0.0000</b> · slope <b>+0.0000</b>",
    ]
    line = figure.layout.shapes[0]
    assert line.x0 == line.x1 == -1.5
    dots = [trace for trace in figure.data if trace.mode == "markers" and trace.marker.symbol is None]
    assert [(trace.x[0], trace.y[0], trace.yaxis) for trace in dots][:2] == [(-1.5, 2.25, "y"), (-1.5, -3.0, "y2")]
    flat = [trace for trace in figure.data if trace.marker.symbol == "diamond-open"]
    assert [(trace.x[0], trace.y[0], trace.yaxis) for trace in flat] == [(0.0, 0.0, "y"), (0.0, 0.0, "y2")]


def test_curves_are_told_apart_by_dash_and_not_by_colour_alone() -> None:
    dashes = [trace.line.dash for trace in activations(("a", "b", "c")).data if trace.showlegend]
    assert len(set(dashes)) == 3


def test_the_lines_show_a_token_s_probability_and_rank_half_a_layer_apart_with_rank_one_on_top() -> None:
    p, rank = np.array([0.1, 0.2, 0.3, 0.4]), np.array([500, 20, 3, 1])
    figure = Figure(lines.path_lines(p[None], rank[None], ["a", "b", "c", "d"], **PATHS))
    upper, lower = figure.data
    np.testing.assert_array_equal(upper.x, [0, 0.5, 1, 1.5])
    np.testing.assert_allclose(upper.y, p, rtol=1e-6)
    np.testing.assert_array_equal(lower.y, rank)
    axis = figure.layout.yaxis2
    assert axis.type == "log"
    assert axis.range[0] > np.log10(500) > 0 > axis.range[1]


def test_the_lines_of_several_tokens_differ_in_hue_and_dash() -> None:
    paths = lines.path_lines(np.zeros((6, 2)), np.ones((6, 2)), ["a", "b"], HOSTILE[:1] * 6, **PATHS)
    upper = Figure(paths).data[::2]
    assert {line.name for line in upper} == {"&lt;b&gt;bold&lt;/b&gt;"}
    assert len({line.line.color for line in upper}) == len({line.line.dash for line in upper}) == 6


# Maps


@pytest.mark.parametrize(("n", "cached"), [(1, 0), (5, 0), (64, 0), (3, 7)])
def test_a_heatmap_shows_every_weight_and_nothing_ahead(n: int, cached: int) -> None:
    weights = causal(n, cached)
    cells = heatmap(weights).data[0]
    z = np.asarray(cells.z)
    for query in range(n):
        for key in range(n + cached):
            assert math.isnan(z[query, key]) if key > query + cached else z[query, key] == weights[query, key]
    assert cells.zmin == 0


def test_the_colours_of_a_heatmap_span_what_later_rows_hold_and_the_scale_says_so() -> None:
    weights = np.tril(np.full((8, 8), 0.1, dtype=np.float32))
    weights[0, 0], weights[1, 0], weights[5, 2] = 1.0, 0.9, 0.25
    cells = heatmap(weights).data[0]
    assert (cells.zmin, cells.zmax) == (0, 0.25)
    assert list(cells.colorbar.ticktext) == ["0", "≥ 0.25"]
    weights[5, 2] = 1.0
    assert list(heatmap(weights).data[0].colorbar.ticktext) == ["0", "1"]


def test_a_heatmap_knows_every_token_for_hovering_and_labels_the_selected_one() -> None:
    tokens = [f"t{i}" for i in range(100)]
    figure = Figure(maps.attention_heatmap(causal(100), tokens, tokens, selected=37, first=28, **ATTENTION))
    layout = figure.layout
    assert layout.xaxis.ticktext[37] == layout.yaxis.ticktext[37] == "t37  65"
    assert len(layout.xaxis.ticktext) == 100
    for axis in (layout.xaxis2, layout.yaxis2):
        assert len(axis.ticktext) <= 26
        assert "t37" in axis.ticktext
        assert [f"t{place}" for place in axis.tickvals] == list(axis.ticktext)
    frame = layout.shapes[0]
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (-0.5, 37.5, 36.5, 37.5)


def test_a_heatmap_of_64_tokens_is_less_than_32_kilobytes() -> None:
    figure = maps.attention_heatmap(causal(64), [" token"] * 64, [" token"] * 64, selected=63, **ATTENTION)
    assert len(to_json(chart_data(figure, "A sentence."))) < 32 * 1024


def test_the_lens_holds_every_probability_and_every_token_as_text() -> None:
    cells = lens().data[0]
    np.testing.assert_array_equal(cells.z, P)
    assert (cells.zmin, cells.zmax) == (0, 1)
    assert [list(line) for line in cells.text] == [["&lt;b&gt;bold…", "&amp;amp;", "1"]] * 2
    assert [list(line) for line in cells.customdata] == [["&lt;b&gt;bold&lt;/b&gt;", "&amp;amp;", "1"]] * 2


def test_the_lens_frames_the_selected_column_and_in_it_the_selected_cell() -> None:
    column, cell = lens(column=1, row=0).layout.shapes
    assert (column.x0, column.x1, column.y0, column.y1) == (0.5, 1.5, -0.5, 1.5)
    assert (cell.x0, cell.x1, cell.y0, cell.y1) == (0.5, 1.5, -0.5, 0.5)
    assert cell.line.width > column.line.width


def test_a_lens_of_48_layers_is_less_than_160_kilobytes() -> None:
    table, tips = [[" something"] * 16] * 48, [["what is said of a cell " * 3] * 16] * 48
    figure = maps.lens_heatmap(np.zeros((48, 16)), table, table[0], table[0], tips=tips, column=0, row=0, **MAP)
    assert len(to_json(chart_data(figure, "A sentence."))) < 160 * 1024


def test_the_first_layer_is_on_top_of_every_map() -> None:
    for figure in (lens(), heads(P), heads(P, diverging=False), EVERY["recovery"]):
        first, last = figure.layout.yaxis.range
        assert first > last


def test_a_map_of_heads_is_even_around_zero_and_leaves_nothing_where_nothing_was_measured() -> None:
    cells = heads(np.array([[0.5, -2.0], [np.nan, 0.001]])).data[0]
    assert (cells.zmin, cells.zmax) == (-2, 2)
    assert [list(line) for line in cells.text] == [["+0.50", "−2.00"], ["", "0.00"]]
    shares = heads(np.array([[0.05, 0.4]]), diverging=False).data[0]
    assert (shares.zmin, shares.zmax) == (0, pytest.approx(0.4))


def test_a_map_of_heads_frames_one_head_or_a_layer_and_drops_numbers_that_would_not_fit() -> None:
    head = heads(P, selected=(1, 2)).layout.shapes[0]
    assert (head.x0, head.x1, head.y0, head.y1) == (1.5, 2.5, 0.5, 1.5)
    layer = heads(P, selected=(0, None)).layout.shapes[0]
    assert (layer.x0, layer.x1, layer.y0, layer.y1) == (-0.5, 2.5, -0.5, 0.5)
    assert heads(np.zeros((48, 25))).data[0].text is None


def test_a_map_of_patching_has_zero_in_the_middle_of_its_colours_and_both_tokens_where_they_differ() -> None:
    values = np.array([[0.2, 1.4], [-0.1, 0]])
    figure = Figure(maps.recovery_heatmap(values, ["<b>", "x"], ["y", "x"], cell=(1, 0), **MAP))
    cells = figure.data[0]
    assert (cells.zmin, cells.zmax) == pytest.approx((-1.4, 1.4))
    assert figure.layout.xaxis.ticktext == ("&lt;b&gt; / y", "x")
    assert len(figure.layout.shapes) == 1
