"""Figures and colours: they draw what they are given, tokens stay data, and both themes can be read."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from plotly.graph_objects import Figure

from components.figures import bars, lines, maps, style
from components.figures.style import DARK_PARTNERS, token_label
from components.next_tokens import best, token_bars, with_chosen
from gpt import get_model

AXES = {"x_title": "x", "y_title": "y"}
HOSTILE = ["<b>bold</b>", "&amp;", "1", "", " \n\t"]
THREE = HOSTILE[:3]
P = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], dtype=np.float32)
X = np.linspace(-3, 3, 241)


def shown(labels: list[str]) -> list[str]:
    """Return the tick labels with which plotly shows those tokens."""
    return [token_label(label) for label in labels]


def causal(n: int) -> np.ndarray:
    """Return random attention weights (n, n) whose rows each sum to 1 over the visible keys."""
    weights = np.tril(np.random.default_rng(n).random((n, n)) + 1e-3).astype(np.float32)
    return weights / weights.sum(axis=1, keepdims=True)


def heatmap(weights: np.ndarray, **options: int) -> Figure:
    return Figure(maps.attention_heatmap(weights, ["q"] * len(weights), **options))


def heads(values: np.ndarray, **options: object) -> Figure:
    return Figure(maps.head_map(values, title="value", **{"diverging": True} | options))


def lens(**options: int) -> Figure:
    place = {"column": 2, "row": 1} | options
    return Figure(maps.lens_heatmap(P, [THREE] * 2, THREE, THREE, tips=[THREE] * 2, **place))


def activations(names: tuple[str, ...] = ("a",), at: float = 0.0) -> Figure:
    return Figure(lines.activation_curves(X, dict.fromkeys(names, X), dict.fromkeys(names, X), at=at, flat=0.0))


# Properties of all figures

EVERY = {
    "sizes": Figure(bars.size_bars(["a"], np.array([1]), ["one"])),
    "signed": Figure(bars.signed_bars(["a"], np.ones(1), ["1"], title="cosine", full=1.0)),
    "layers": Figure(bars.layer_bars({"b": np.ones(1), "c": np.ones(1)}, [("a", 1.0)])),
    "divergence": Figure(bars.divergence_bars({"": np.ones(2)}, ["a", "b"], selected=0)),
    "groups": Figure(bars.grouped_bars(["a"], {"one": np.ones(1), "two": np.zeros(1)}, log=True, digits=".2g")),
    "four groups": Figure(bars.grouped_bars(["a"], {name: np.ones(1) for name in "abcd"})),
    "shares": Figure(bars.grouped_bars(["a"], {"b": np.ones(1)}, barmode="stack", framed=0, **AXES)),
    "histogram": Figure(bars.histogram(np.ones(2), np.arange(3), **AXES)),
    "rows": Figure(bars.row_bars(P, ["a", "b"], P.mean(axis=1), P.std(axis=1))),
    "merges": Figure(bars.merge_ladder([[bars.Cell("a", 1), bars.Cell("b", 1)], [bars.Cell("ab", 2, True, "c")]])),
    "lines": Figure(lines.lines(X, {"a": X}, **AXES, level_at=("floor", 1.0), mark=("here", 0.0))),
    "logarithmic": Figure(lines.lines(np.array([1, 2]), {"a": np.array([1, 9])}, **AXES, log_y=True)),
    "tokens": Figure(lines.lines(np.arange(3), {"a": np.ones(3)}, **AXES, ticks=THREE)),
    "paths": Figure(lines.path_lines(np.ones((3, 2)), np.ones((3, 2)), ["a", "b"], THREE)),
    "stages": Figure(
        lines.stage_lines(["a"], [1], np.array([[1.0, np.nan]]), [""], stages=["x", "y"], followed=0, title="t")
    ),
    "activations": activations(),
    "circles": Figure(lines.circles([("a", 1.0, 2.0)])),
    "attention": heatmap(causal(8), selected=3),
    "lens": lens(),
    "recovery": Figure(maps.recovery_heatmap(P, THREE, THREE, cell=(1, 0))),
    "heads": heads(P, selected=(0, 0)),
    "grid": Figure(maps.grid(P - 0.3, x_title="number", y_title="place")),
    "similarity": Figure(maps.similarity_heatmap(np.eye(4), np.arange(4))),
}


@pytest.mark.parametrize("figure", EVERY.values(), ids=EVERY)
def test_every_colour_has_a_partner_on_the_dark_theme_and_no_figure_carries_a_template(figure: Figure) -> None:
    content = json.loads(figure.to_json())
    assert set(hex_colours(content)) <= set(DARK_PARTNERS)
    assert len(json.dumps(content["layout"]["template"])) < 64


def hex_colours(node: object) -> list[str]:
    """Return every hex colour of a figure."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        return [colour for item in node for colour in hex_colours(item)]
    return [node] if isinstance(node, str) and node.startswith("#") else []


def test_labels_show_whitespace_and_keep_markup_as_text() -> None:
    assert shown([" a b", "\n", "<b>", "a&b"]) == ["·a·b", "⏎", "&lt;b&gt;", "a&amp;b"]
    assert token_label("<" * 40) == "&lt;" * 13 + "…"


# Maps


@pytest.mark.parametrize("n", [1, 5, 64])
def test_a_heatmap_shows_every_weight_and_nothing_ahead(n: int) -> None:
    weights = causal(n)
    cells = heatmap(weights).data[0]
    z = np.asarray(cells.z)
    for query in range(n):
        for key in range(n):
            assert math.isnan(z[query, key]) if key > query else z[query, key] == weights[query, key]
    assert cells.zmin == 0


def test_the_colours_of_a_heatmap_span_what_later_rows_hold_and_the_scale_says_so() -> None:
    weights = np.tril(np.full((8, 8), 0.1, dtype=np.float32))
    weights[0, 0], weights[1, 0], weights[5, 2] = 1.0, 0.9, 0.25
    cells = heatmap(weights).data[0]
    assert (cells.zmin, cells.zmax) == (0, 0.25)
    assert list(cells.colorbar.ticktext) == ["0", "≥ 0.25"]
    weights[5, 2] = 1.0
    assert list(heatmap(weights).data[0].colorbar.ticktext) == ["0", "1"]


THEMES = ("light", "dark")


def linear(colour: str) -> np.ndarray:
    """Convert sRGB hex to linear light (IEC 61966-2-1)."""
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    """Return WCAG 2.2's contrast ratio."""
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_text_can_be_read_on_the_page_on_cards_and_on_the_tints_of_tokens(theme: str) -> None:
    colour = {name: getattr(pair, theme) for name, pair in style.PALETTE.items()}
    tints = [getattr(pair, theme) for pair in style.SEQUENTIAL[:4]]  # tokens.css uses only these
    for name, grounds in {
        "text": [colour["surface"], colour["card"], colour["raised"], *tints],
        "muted": [colour["surface"], colour["card"], colour["raised"]],
        "accent": [colour["card"]],
        "danger": [colour["card"]],
        "on_primary": [colour["primary"], colour["after"]],
    }.items():
        assert min(contrast(colour[name], ground) for ground in grounds) >= 4.5, name


def test_every_light_colour_has_one_dark_partner() -> None:
    maps = (style.SEQUENTIAL, style.ATTENTION, style.DIVERGING)
    pairs = {*style.PALETTE.values(), *(pair for each in maps for pair in each)}
    assert len({pair.light for pair in pairs}) == len(pairs) == len(style.DARK_PARTNERS)


def shares(size, zeros, seed):
    rng = np.random.default_rng(seed)
    raw = rng.random(size).astype(np.float32)
    final = np.where(rng.random(size) < zeros, 0, raw * rng.random(size)).astype(np.float32)
    return raw / raw.sum(), final / max(final.sum(), 1e-9)


@pytest.mark.parametrize(("size", "most"), [(1, 5), (5, 5), (6, 5), (5000, 20)])
@pytest.mark.parametrize("zeros", [0, 0.5, 0.999])
def test_the_best_are_those_of_a_full_sort(size, most, zeros):
    raw, final = shares(size, zeros, size)
    assert best(final, raw, most).tolist() == np.lexsort((np.arange(size), -raw, -final))[:most].tolist()


def test_a_chosen_token_is_listed_however_unlikely_and_a_bar_says_its_change():
    assert [with_chosen([1, 2], chosen) for chosen in (None, 2, 7)] == [[1, 2], [1, 2], [1, 7]]
    before, after = (torch.zeros(300).index_fill(0, torch.tensor([72]), p).numpy() for p in (0.41, 0.58))
    data = token_bars("Next", get_model().tokenizer, [71, 72], before, after, chosen=72, sends={"behind": 3})
    assert (data["chosen"], data["common"]) == (1, {"behind": 3})
    assert data["bars"][1][1:] == [0.41, 0.58, data["bars"][1][3], {"token": 72}]
    assert data["bars"][1][3].endswith("58%, 41% at temperature 1")
