"""What is sent without plotly's check would pass it."""

from __future__ import annotations

import numpy as np
import pytest
from plotly.graph_objects import Figure

from components.panels.figures.charts import lines, pair_bars, stacked_bars


@pytest.mark.parametrize("log", [True, False])
def test_pairs_of_bars_are_figures(log: bool) -> None:
    figure = Figure(pair_bars(["a", "<b>"], {"one": np.array([1.0, 0.0]), "two": np.array([0.5, 3.0])}, log=log))
    assert [trace.name for trace in figure.data] == ["one", "two"]
    assert figure.layout.xaxis.ticktext == ("a", "&lt;b&gt;")


def test_stacked_bars_are_a_figure_and_the_spread_is_a_line_on_each_bar() -> None:
    parts = {"one": np.array([1.0, 2.0]), "two": np.array([3.0, 4.0])}
    figure = Figure(stacked_bars(["a", "<b>"], parts, spread=(np.array([3.5, 6.0]), np.array([5.0, 6.5])), highest=9))
    assert figure.layout.barmode == "stack"
    assert figure.layout.xaxis.ticktext == ("a", "&lt;b&gt;")
    ends = figure.data[2].y.reshape(2, 3)
    assert ends[:, :2].tolist() == [[3.5, 5.0], [6.0, 6.5]]
    assert np.isnan(ends[:, 2]).all()


@pytest.mark.parametrize("logarithmic", [True, False])
def test_lines_are_figures(logarithmic: bool) -> None:
    x = np.array([1.0, 2.0, 4.0])
    marks = {"level": ("chance", 2.0), "mark": ("here", 2.0), "ticks": ["a", "b", "c"]}
    figure = Figure(lines(x, {"one": x, "two": x**2}, log_x=logarithmic, log_y=logarithmic, **marks, markers=True))
    assert figure.data[1].y.tolist() == [1, 4, 16]


def test_as_many_bars_as_names() -> None:
    with pytest.raises(ValueError, match="2 names need as many bars, not 3"):
        pair_bars(["a", "b"], {"one": np.ones(3)})
    with pytest.raises(ValueError, match="2 names need as many bars, not 3"):
        stacked_bars(["a", "b"], {"one": np.ones(3)})
