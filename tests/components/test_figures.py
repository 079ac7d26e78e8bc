"""Figures: what is drawn is what was given, tokens stay data, and an update is small."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from components.figures import charts as figures
from components.panels.figures import curves as curve_figures
from components.widgets.chart import chart_data
from components.widgets.encoding import to_json

HOSTILE = ["<b>bold</b>", "&amp;", "1", "", " \n\t"]


def shown(labels: list[str]) -> list[str]:
    """What tick labels must be for plotly to show those tokens."""
    return [figures.token_label(label) for label in labels]


def causal(n: int, cached: int = 0) -> np.ndarray:
    """Random attention weights (n, n + cached); each row sums to one over what it may see."""
    weights = np.tril(np.random.default_rng(n).random((n, n + cached)) + 1e-3, k=cached).astype(np.float32)
    return weights / weights.sum(axis=1, keepdims=True)


def test_labels_show_whitespace_and_keep_markup_as_text() -> None:
    assert shown([" a b", "\n", "<b>", "a&b"]) == ["·a·b", "⏎", "&lt;b&gt;", "a&amp;b"]
    assert figures.token_label("<" * 40) == "&lt;" * 13 + "…"


def test_bars_hold_the_probabilities_in_order_at_integer_places() -> None:
    before, after = np.array([0.5, 0.3, 0.2, 0.0, 0.0]), np.array([0.7, 0.3, 0.0, 0.0, 0.0])
    figure = figures.next_token_bars(HOSTILE, before, after, chosen=1)
    pale, strong = figure.data[:2]
    np.testing.assert_allclose(pale.x, before, rtol=1e-6)
    np.testing.assert_allclose(strong.x, after, rtol=1e-6)
    assert list(pale.y) == list(strong.y) == list(figure.layout.yaxis.tickvals) == [0, 1, 2, 3, 4]
    texts = list(figure.layout.yaxis.ticktext)
    assert texts[1] == "<b>&amp;amp;</b>"  # the chosen one in bold, and nothing else
    assert [texts[0], *texts[2:]] == shown([HOSTILE[0], *HOSTILE[2:]])
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first on top


def test_bars_say_their_change_in_words() -> None:
    figure = figures.next_token_bars(["a", "b", "c"], np.array([0.41, 0.032, 1e-6]), np.array([0.58, 0.032, 0.0]))
    said = [text.replace("\u00a0", " ").strip() for text in figure.data[3].text]
    assert said == ["41 % → 58 %", "3.2 %", "&lt; 0.01 % → 0 %"]


def test_the_chosen_bar_is_marked_by_a_sign_and_not_by_colour_alone() -> None:
    uniform = np.full(3, 1 / 3)
    marked, plain = (figures.next_token_bars(["a", "b", "c"], uniform, uniform, chosen=row) for row in (2, None))
    assert list(marked.data[2].y) == [2]
    assert marked.data[2].name == "chosen"
    assert list(plain.data[2].y) == [None]
    assert (marked.data[2].showlegend, plain.data[2].showlegend) == (True, False)


def test_while_a_text_streams_the_legend_does_not_jump() -> None:
    names = {"before_name": "before", "after_name": "after", "chosen_name": "chosen"}
    labels, uniform = ["a", "b", "c"], np.full(3, 1 / 3)
    bars = [figures.next_token_bars_content(labels, uniform, uniform, chosen=row, **names)["data"] for row in (2, None)]
    assert [[trace.get("showlegend", True) for trace in of] for of in bars] == [[True, True, True, False]] * 2


def test_twenty_bars_are_less_than_four_kilobytes() -> None:
    probabilities = np.random.default_rng(0).dirichlet(np.ones(20))
    figure = figures.next_token_bars([" something"] * 20, probabilities, probabilities**2, chosen=3)
    assert len(to_json(chart_data(figure, "A sentence of some length."))) < 4096


def test_bars_need_as_many_numbers_as_labels() -> None:
    with pytest.raises(ValueError, match="2 labels need as many bars, not 2 and 3"):
        figures.next_token_bars(["a", "b"], np.zeros(2), np.zeros(3))


@pytest.mark.parametrize(("n", "cached"), [(1, 0), (5, 0), (64, 0), (3, 7)])
def test_a_heatmap_shows_every_weight_and_nothing_ahead(n: int, cached: int) -> None:
    weights = causal(n, cached)
    figure = figures.attention_heatmap(weights, ["q"] * n, ["k"] * (n + cached))
    z = np.asarray(figure.data[0].z)
    for query in range(n):
        for key in range(n + cached):
            assert math.isnan(z[query, key]) if key > query + cached else z[query, key] == weights[query, key]
    assert figure.data[0].zmin == 0


def test_the_colours_of_a_heatmap_span_what_later_rows_hold_and_the_scale_says_so() -> None:
    weights = np.tril(np.full((8, 8), 0.1, dtype=np.float32))
    weights[0, 0], weights[1, 0], weights[5, 2] = 1.0, 0.9, 0.25
    heat = figures.attention_heatmap(weights, ["q"] * 8, ["k"] * 8).data[0]
    assert (heat.zmin, heat.zmax) == (0, 0.25)
    assert list(heat.colorbar.ticktext) == ["0", "≥ 0.25"]
    weights[5, 2] = 1.0
    heat = figures.attention_heatmap(weights, ["q"] * 8, ["k"] * 8).data[0]
    assert list(heat.colorbar.ticktext) == ["0", "1"]


def test_a_heatmap_knows_every_token_for_hovering_and_labels_the_selected_one() -> None:
    tokens = [f"t{i}" for i in range(100)]
    layout = figures.attention_heatmap(causal(100), tokens, tokens, selected=37, first=28).layout
    assert layout.xaxis.ticktext[37] == layout.yaxis.ticktext[37] == "t37  65"
    assert len(layout.xaxis.ticktext) == 100
    for axis in (layout.xaxis2, layout.yaxis2):
        assert len(axis.ticktext) <= 26
        assert "t37" in axis.ticktext
        assert [f"t{place}" for place in axis.tickvals] == list(axis.ticktext)
    frame = layout.shapes[0]
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (-0.5, 37.5, 36.5, 37.5)


def test_a_heatmap_of_64_tokens_is_less_than_32_kilobytes() -> None:
    figure = figures.attention_heatmap(causal(64), [" token"] * 64, [" token"] * 64, selected=63)
    assert len(to_json(chart_data(figure, "A sentence."))) < 32 * 1024


def test_a_heatmap_needs_a_label_for_each_row_and_column() -> None:
    with pytest.raises(ValueError, match=r"weights of shape \(3, 3\) need as many labels, not \(3, 2\)"):
        figures.attention_heatmap(causal(3), ["a"] * 3, ["a"] * 2)


def test_curves_print_the_values_at_x_and_mark_the_flat_place() -> None:
    x = np.linspace(-3, 3, 241)
    curves = {"square": x**2, "ReLU <b>": np.maximum(x, 0)}
    slopes = {"square": 2 * x, "ReLU <b>": (x > 0).astype(float)}
    figure = curve_figures.activation_curves(x, curves, slopes, at=-1.5, flat=0.0, slope_title="slope")
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
    x = np.linspace(-1, 1, 5)
    names = ("a", "b", "c")
    figure = curve_figures.activation_curves(x, dict.fromkeys(names, x), dict.fromkeys(names, x), at=0.0)
    dashes = [trace.line.dash for trace in figure.data if trace.showlegend]
    assert len(set(dashes)) == 3


def test_a_histogram_puts_each_count_between_its_edges_on_the_curves_axis() -> None:
    counts, edges = np.histogram([-2.5, -2.4, 0.1, 2.9], bins=6, range=(-3, 3))
    figure = curve_figures.histogram(counts, edges)
    bars = figure.data[0]
    assert list(bars.y) == [2, 0, 0, 1, 0, 1]
    np.testing.assert_allclose(bars.x - bars.width / 2, edges[:-1], atol=1e-6)
    np.testing.assert_allclose(bars.x + bars.width / 2, edges[1:], atol=1e-6)
    x = np.linspace(-3, 3, 5)
    curves = curve_figures.activation_curves(x, {"a": x}, {"a": x}, at=0.0)
    assert figure.layout.xaxis.range == curves.layout.xaxis.range == (-3.0, 3.0)
    assert (figure.layout.margin.l, figure.layout.margin.r) == (curves.layout.margin.l, curves.layout.margin.r)


def test_a_histogram_needs_one_edge_more_than_bars() -> None:
    with pytest.raises(ValueError, match="3 bars need 4 edges, not 3"):
        curve_figures.histogram(np.zeros(3), np.zeros(3))


def test_no_figure_carries_the_default_template() -> None:
    x = np.linspace(-1, 1, 3)
    for figure in (
        figures.next_token_bars(["a"], np.ones(1), np.ones(1)),
        figures.attention_heatmap(causal(2), ["a", "b"], ["a", "b"]),
        curve_figures.activation_curves(x, {"a": x}, {"a": x}, at=0.0),
        curve_figures.histogram(np.ones(2), np.arange(3)),
    ):
        assert len(json.dumps(json.loads(figure.to_json())["layout"]["template"])) < 64


def test_figures_know_neither_gradio_nor_torch() -> None:
    code = "import sys, components.figures.charts; print({'gradio', 'torch', 'gpt'} & set(sys.modules) or 'none')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "none"
