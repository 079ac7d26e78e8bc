"""Draw heatmaps from NumPy arrays, with the first row on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unicodedata import east_asian_width

import numpy as np

from components.figures import style
from components.i18n import t
from components.labels import decimal, shortened, signed

_GAP = 4  # pixels between labels and cells
_SMALL = 10  # font size of the labels below attention weights, in pixels
_SHADES = style.SEQUENTIAL[:4]  # light enough for text on top
_AROUND_ZERO = style.DIVERGING[2:-2]  # also light enough for text
_SCALE = 168  # length of a colour scale in pixels, including margins
_TEXT_COLUMNS = 14  # maximum number of columns with numbers in the cells
_FEW = 8  # rows or columns of a grid that are numbered each


def _cells(
    z: np.ndarray, low: float, high: float, colours: tuple[style.Colour, ...], tip: str, **options: Any
) -> style.Trace:
    scale = {"zmin": low, "zmax": high, "colorscale": style.colorscale(colours)}
    cells = {"type": "heatmap", "z": style.floats(z), "xgap": 1, "ygap": 1, "hoverongaps": False}
    return cells | scale | {"hovertemplate": f"{tip}<extra></extra>"} | options


def _written(texts: Sequence[Sequence[str]]) -> dict[str, Any]:
    return {"text": texts, "texttemplate": "%{text}", "textfont": style.SMALL | {"color": style.LIGHT["text"]}}


def _scale_above(ends: Sequence[float], names: Sequence[str]) -> dict[str, Any]:
    """Return a small colour scale in the left margin above the cells; `_scale_title` draws its title."""
    place = {"orientation": "h", "x": 0, "xanchor": "left", "yref": "container", "y": 1, "yanchor": "top"}
    size = {"lenmode": "pixels", "len": _SCALE, "thickness": 8, "xpad": 20, "ypad": 4, "outlinewidth": 0}
    return {
        "colorbar": place | size | {"tickfont": {"size": 11}, "tickvals": ends, "ticktext": names} | style.ALL_LABELS
    }


def _scale_title(title: str, margin: int) -> dict[str, Any]:
    """Return the title of a colour scale, placed to its right. margin: height of the margin in pixels."""
    place = {"x": 0, "xanchor": "left", "xshift": _SCALE - 8, "y": 1, "yanchor": "middle", "yshift": margin - 8}
    return style.note(style.escape(title), **style.ON_PAPER, **place, font={"size": 11}, borderpad=0)


def _layers_axis(n_layer: int) -> dict[str, Any]:
    return style.steps_axis(n_layer, t("stream.layer"), range=[n_layer - 0.5, -0.5])


def _layer_map(
    cells: style.Trace, across: dict[str, Any], title: str, frames: Sequence[Any], below: int, bottom: int
) -> style.Figure:
    """Return a map with one row for each layer. title: of the scale. below: pixels for labels; bottom: margin."""
    n_layer = len(cells["z"])
    height, notes = min(26 * n_layer, 460) + 48 + below, [_scale_title(title, 48)]
    margin = (48, 12, 48, bottom)
    return style.figure(
        [cells], across, _layers_axis(n_layer), height=height, margin=margin, annotations=notes, shapes=frames
    )


def attention_heatmap(
    weights: np.ndarray,
    labels: Sequence[str],
    *,
    selected: int | None = None,
    first: int = 0,
    full: float | None = None,
) -> style.Figure:
    """Draw attention weights with queries as rows and keys as columns.

    Keys after the query stay blank if they receive no weight. weights: (T, T) in 0..1 or NaN. first: the first token's
    position in the text. full: the weight at the top of the colour scale. Defaults to the largest weight after the
    first quarter of the rows, because the first rows have few keys and therefore large weights; larger weights are
    marked by "≥" on the scale.
    """
    n = len(weights)
    masked = ~np.tri(n, dtype=bool) & (np.asarray(weights) == 0)
    largest = float(np.nanmax(weights))
    strongest = full or float(np.nanmax(weights[min(max(1, n // 4), n - 1) :], initial=1e-6))
    names = [style.token_label(label) for label in labels]
    numbered = [f"{name}  {first + i}" for i, name in enumerate(names)]
    # To spare Plotly from measuring every label, margins are computed from label lengths, and titles are annotations.
    left, below = _room(labels, style.LABEL["size"]), _room(labels, _SMALL)
    title = {**style.ON_PAPER, "xanchor": "center", "yanchor": "middle", "font": {}}
    weight_title = style.escape(t("attention.weight"))
    # The corner above the diagonal is blank in causal attention.
    corner = {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "top", "len": 0.36, "thickness": 8}
    corner |= {"title": {"text": weight_title, "side": "top"}, "outlinewidth": 0, "ypad": 4} | style.ALL_LABELS
    corner |= {"tickvals": [0, strongest], "ticktext": ["0", f"{'≥ ' if largest > strongest else ''}{strongest:.2g}"]}
    tip = f"%{{y}} → %{{x}}<br>{weight_title} %{{z:.4f}}"
    gaps = {"xgap": int(n <= 48), "ygap": int(n <= 48), "showscale": n >= 6, "colorbar": corner}
    # x and y have all labels, for the hover text; x2 and y2 overlay those that fit legibly.
    upright = max(map(len, names), default=0) == 1
    columns: dict[str, Any] = {"overlaying": "x", "matches": "x", "side": "bottom", "tickangle": 0 if upright else -90}
    columns |= {"ticklabelstandoff": _GAP, "tickfont": style.LABEL | {"size": _SMALL}}
    rows = {"overlaying": "y", "matches": "y", "side": "left", "ticklabelstandoff": _GAP}
    return style.figure(
        [
            _cells(np.where(masked, np.nan, weights), 0, strongest, style.ATTENTION, tip, **gaps),
            {"type": "scatter", "x": [None], "y": [None], "xaxis": "x2", "yaxis": "y2", "showlegend": False},
        ],
        style.names_axis(numbered, showticklabels=False, range=[-0.5, n - 0.5]),
        style.names_axis(numbered, showticklabels=False, range=[n - 0.5, -0.5]),
        xaxis2=style.names_axis(names, most=18 if upright else 26, keep=selected) | columns,
        yaxis2=style.names_axis(names, most=26, keep=selected) | rows,
        height=int(np.clip(17 * n + 150, 220, 560)),
        margin=(left, 8, 8, below),
        annotations=[
            style.note(style.escape(t("attention.query")), x=0, y=0.5, xshift=9 - left, textangle=-90, **title),
            style.note(style.escape(t("attention.key")), x=0.5, y=0, yshift=9 - below, **title),
        ],
        shapes=[] if selected is None else [style.outline((0, selected), (selected, selected))],
    )


def _room(labels: Sequence[str], size: int) -> int:
    """Return the space before the axis in pixels: title plus longest label in a monospaced font of this size."""
    letters = (shortened(label, 14) for label in labels)
    widest = max((sum(1.0 if east_asian_width(c) in "WF" else 0.61 for c in text) for text in letters), default=0)
    return 26 + _GAP + round(size * widest)


def lens_heatmap(
    probability: np.ndarray,
    texts: Sequence[Sequence[str]],
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    column: int,
    row: int,
    tips: Sequence[Sequence[str]],
) -> style.Figure:
    """Draw each layer's prediction after each token, with layers as rows and the tokens in the text as columns.

    probability: the best token's probability in each cell, (n_layer, N), in 0..1. texts, tips: that token and the
    cell's tooltip, (n_layer, N). inputs, outputs: the input tokens and the actual next tokens ("" if there is none),
    (N,). (row, column): the selected cell.
    """
    n_layer, n = np.shape(probability)
    above, letters = 96, 8  # pixels for the scale and the vertical tokens on a narrow page; letters per cell
    names, followers, *cells = (
        [style.token_label(text, letters) for text in line] for line in (inputs, outputs, *texts)
    )
    says = {"customdata": [[style.escape(tip) for tip in line] for line in tips]}
    below = {
        "overlaying": "x",
        "matches": "x",
        "side": "bottom",
        "tickfont": style.SMALL | {"color": style.LIGHT["muted"]},
    }
    return style.figure(
        [
            _cells(probability, 0, 1, _SHADES, "%{customdata}", **_written(cells), **says)
            | _scale_above([0, 1], ["0", "100 %"]),
            {"type": "scatter", "x": [None], "y": [None], "xaxis": "x2", "showlegend": False},
        ],
        style.names_axis(names, side="top", range=[-0.5, n - 0.5]),
        _layers_axis(n_layer),
        xaxis2=style.names_axis(followers, automargin=True) | below,
        meta={"column": column},
        height=max(min(26 * n_layer, 460), 15 * n_layer) + above + 68,
        margin=(48, 8, above, 8),
        annotations=[_scale_title(t("why.lens.scale"), above)],
        shapes=[style.outline((column, column), (0, n_layer - 1), 1), style.outline((column, column), (row, row), 3)],
    )


def recovery_heatmap(
    recovered: np.ndarray,
    clean: Sequence[str],
    corrupted: Sequence[str],
    *,
    cell: tuple[int, int] | None = None,
) -> style.Figure:
    """Draw how much of an effect activation patching restores at each layer and position.

    recovered: (n_layer, T), where 0 matches the corrupted run and 1 the clean run; values may lie outside 0..1, and the
    colour scale is symmetric around 0. clean, corrupted: the tokens in each prompt, (T,); the label shows both if they
    differ. cell: (layer, position) to frame.
    """
    n_layer, n = np.shape(recovered)
    names = [
        style.token_label(a, 10) if a == b else f"{style.token_label(a, 8)} / {style.token_label(b, 8)}"
        for a, b in zip(clean, corrupted, strict=True)
    ]
    edge = max(1.0, float(np.abs(recovered).max(initial=0)))
    numbered = n <= _TEXT_COLUMNS and n_layer <= 16
    tip = f"{style.escape(t('attention.layer'))} %{{y}} · %{{customdata}} · %{{z:.1%}}"
    cells = _cells(
        recovered, -edge, edge, _AROUND_ZERO if numbered else style.DIVERGING, tip, customdata=[names] * n_layer
    )
    cells |= _scale_above([-edge, 0, edge], [f"−{100 * edge:.0f} %", "0", f"{100 * edge:.0f} %"])
    if numbered:
        cells |= _written([[decimal(100 * value, 0) for value in row] for row in recovered])
    below = {"range": [-0.5, n - 0.5], "tickangle": -90, "automargin": True, "tickfont": style.LABEL | {"size": 11}}
    across = style.names_axis(names, most=26, keep=cell and cell[1]) | below
    frames = [] if cell is None else [style.outline((cell[1], cell[1]), (cell[0], cell[0]), 3)]
    return _layer_map(cells, across, t("change.patch.scale"), frames, 94, 8)


def head_map(
    values: np.ndarray, *, diverging: bool, selected: tuple[int, int | None] | None = None, title: str
) -> style.Figure:
    """Draw one number per head, with layers as rows and heads as columns. NaN leaves a cell blank.

    values: (n_layer, n_head), on a scale that diverges around zero or starts at 0. selected: (layer, head), or the
    whole row if head is None.
    """
    n_head = np.shape(values)[1]
    largest = max(float(np.nanmax(np.abs(values), initial=0)), 1e-6 if diverging else 0.1)  # keeps small shares pale
    low = -largest if diverging else 0
    names = [f"−{largest:.2g}", f"+{largest:.2g}"] if diverging else ["0", f"{largest:.2g}"]
    place = f"{style.escape(t('attention.layer'))} %{{y}}, {style.escape(t('attention.head'))} %{{x}}"
    tip = f"{place}<br>{style.escape(title)} %{{z:{'+' if diverging else ''}.3f}}"
    cells = _cells(values, low, largest, _AROUND_ZERO if diverging else _SHADES, tip)
    if n_head <= _TEXT_COLUMNS:
        number = signed if diverging else decimal
        cells |= _written([["" if np.isnan(value) else number(value) for value in line] for line in values])
    frames = []
    if selected is not None:
        layer, head = selected
        frames = [style.outline((0, n_head - 1) if head is None else (head, head), (layer, layer))]
    across = style.steps_axis(n_head, t("stream.head"), range=[-0.5, n_head - 0.5])
    return _layer_map(cells | _scale_above([low, largest], names), across, title, frames, 40, 40)


def grid(
    values: np.ndarray,
    *,
    value_title: str = "",
    x_title: str = "",
    y_title: str = "",
    edge: float | None = None,
    first: tuple[int, int] = (0, 0),
    cell: tuple[int, int] | None = None,
) -> style.Figure:
    """Draw a grid of numbers around zero, (rows, columns).

    With axis titles, rows and columns are numbered; without them, the cells are numbered row by row. edge: the
    magnitude at both ends of the colour scale, by default the largest. first: the numbers of the first row and column.
    cell: (row, column) to frame.
    """
    rows, columns = np.shape(values)
    largest = edge or float(np.nanmax(np.abs(values), initial=1e-9))
    number = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    place = f"{style.escape(y_title)} %{{y}}, {style.escape(x_title)} %{{x}}" if x_title else "%{customdata}"
    tip = f"{style.escape(value_title)} {place}: %{{z:.4f}}"
    cells = _cells(values, -largest, largest, style.DIVERGING, tip, customdata=number, xgap=0, ygap=0)
    cells |= {"y0": first[0], "x0": first[1]}
    numbered: dict[str, Any] = {"showticklabels": bool(x_title), "automargin": True}
    return style.figure(
        [cells | _scale_above([-largest, 0, largest], [f"−{largest:.2g}", "0", f"{largest:.2g}"])],
        style.bare_axis(x_title, **numbered, dtick=1 if columns <= _FEW else None),
        style.bare_axis(y_title, **numbered, dtick=1 if rows <= _FEW else None, autorange="reversed"),
        height=280,
        margin=(4, 4, 40, 4),
        shapes=[] if cell is None else [style.outline((cell[1], cell[1]), (cell[0], cell[0]))],
    )


def similarity_heatmap(cosines: np.ndarray, positions: np.ndarray) -> style.Figure:
    """Draw the cosine similarities (n, n) between the rows at `positions` (n,)."""
    title = t("places.position")
    tip = f"{style.escape(title)} %{{y}}, %{{x}}: {style.escape(t('embeddings.cosine'))} %{{z:.3f}}"
    cells = _cells(cosines, -1, 1, style.DIVERGING, tip, x=positions, y=positions, xgap=0, ygap=0)
    return style.figure(
        [cells | _scale_above([-1, 0, 1], ["−1", "0", "1"])],
        style.bare_axis(title, constrain="domain"),
        style.bare_axis(title, constrain="domain", autorange="reversed", scaleanchor="x"),
        height=400,
        margin=(56, 8, 40, 44),
    )
