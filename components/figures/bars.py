"""Draw bar charts from NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from components.figures import style
from components.i18n import t
from components.labels import decimal, shortened

_PAIR = ("before", "after")
_FOUR = ("after", "text", "muted", "before")
_FOR, _AGAINST = style.DIVERGING[7].light, style.DIVERGING[2].light
_LABELLED = 12  # maximum number of bars if each shows a number
_MAX_TICKS = 26  # maximum number of token labels on an axis
_MAX_CUTS = 64  # maximum number of blocks separated by lines
_FLAT = {"type": "bar", "orientation": "h", "showlegend": False}
_SILENT = {"hoverinfo": "skip", "showlegend": False}
_MUTED = style.SMALL | {"color": style.LIGHT["muted"]}


def _bars(x: np.ndarray, y: np.ndarray, name: str, colour: object, tip: str, **options: Any) -> style.Trace:
    shown = {"name": style.escape(name), "hovertemplate": f"%{{x}}: %{{y:{tip}}}<extra>{style.escape(name)}</extra>"}
    return {"type": "bar", "x": x, "y": y, "marker": {"color": colour, "line": {"width": 0}}} | shown | options


def _numbers(texts: list[str]) -> dict[str, Any]:
    """Return options that show a number beyond the end of each bar."""
    return {"text": texts, "textposition": "outside", "cliponaxis": False, "textfont": _MUTED}


def size_bars(
    names: Sequence[str],
    counts: np.ndarray,
    labels: Sequence[str],
    *,
    ghosts: np.ndarray | None = None,
    blocks: np.ndarray | None = None,
) -> style.Figure:
    """Draw a model's sizes as horizontal bars, the first on top, with a name and label above each.

    counts, (N,): the filled bars. ghosts, (N,): outlined bars for absent or shared parts. blocks, (N,): the number of
    equal segments in a bar, one per block.
    """
    rows, thick = np.arange(len(counts)), 0.4  # bar thickness as a fraction of a row
    ghosts = np.zeros_like(counts) if ghosts is None else ghosts
    bars = _FLAT | _SILENT | {"width": thick, "y": rows}
    hollow = {"color": "rgba(0,0,0,0)", "line": {"color": style.LIGHT["muted"], "width": 1}}
    cuts: list[tuple[float, float]] = []  # lines between the segments, drawn as one path with gaps
    for row, (count, n) in enumerate(zip(counts, np.ones_like(rows) if blocks is None else blocks, strict=True)):
        for place in count * np.arange(1, n) / n if n <= _MAX_CUTS else ():
            cuts += [(place, row - thick / 2), (place, row + thick / 2), (np.nan, np.nan)]
    x, y = style.floats(cuts).reshape(-1, 2).T
    path = {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": {"color": style.LIGHT["card"], "width": 1}}
    above = {"xref": "paper", "yanchor": "bottom", "font": {"size": 12, "color": style.LIGHT["text"]}, "borderpad": 0}
    return style.figure(
        [
            bars | {"x": style.floats(ghosts), "marker": hollow},
            bars | {"x": style.floats(counts), "marker": {"color": style.LIGHT["after"]}},
            path | _SILENT,
        ],
        style.bare_axis(range=[0, max(1e-9, float(max(*counts, *ghosts)))], showticklabels=False),
        style.bare_axis(range=[len(rows) - 0.7, -0.7], showticklabels=False),
        height=38 * len(rows) + 8,
        margin=(0, 0, 8, 0),
        barmode="overlay",
        annotations=[
            style.note(text, x=side, xanchor=anchor, y=row - thick / 2, **above)
            for row, pair in enumerate(zip(names, labels, strict=True))
            for text, side, anchor in zip(pair, (0, 1), ("left", "right"), strict=True)
        ],
    )


def signed_bars(
    names: Sequence[str],
    values: np.ndarray,
    ends: Sequence[str],
    *,
    heads: Sequence[tuple[int, int] | None] | None = None,
    marked: int | None = None,
    title: str = "",
    full: float = 0.0,
) -> style.Figure:
    """Draw horizontal bars from zero, the first on top; positive bars point right, negative ones left.

    values: (N,). names, ends: labels to the left and right of the bars. heads: (layer, head) for each bar that shows
    a head; clicking sends it. marked: the row in bold. title: axis title. full: a value that the axis must include.
    """
    values, rows = style.floats(values), np.arange(len(values))
    ticks = [f"<b>{style.escape(name)}</b>" if row == marked else style.escape(name) for row, name in enumerate(names)]
    low, high = float(values.min(initial=0)), float(values.max(initial=full))
    span = max(high - low, 1e-9)
    colours = [_FOR if value >= 0 else _AGAINST for value in values]
    bars = _FLAT | {"y": rows, "x": values, "width": 0.62, "marker": {"color": colours}, "hoverinfo": "none"}
    sent = [list(head) if head else None for head in heads] if heads else None
    text = _SILENT | {"type": "scatter", "mode": "text", "cliponaxis": False, "textposition": "middle right"}
    written = [f"\u00a0{style.escape(end)}\u00a0" for end in ends]
    x = np.maximum(values, 0)  # never left of zero, where the names are
    scale = {"range": [low - (0.02 * span if low < 0 else 0), high + 0.34 * span], "showticklabels": bool(title)}
    scale |= {"tickvals": [0, full / 2, full]} if full else {}
    return style.figure(
        [bars | {"customdata": sent}, text | {"x": x, "y": rows, "text": written, "textfont": _MUTED}],
        style.bare_axis(title, **scale, zeroline=True, zerolinecolor=style.LIGHT["line"]),
        style.names_axis(ticks, range=[len(values) - 0.5, -0.5], automargin=True, ticklabelstandoff=6),
        height=24 * len(values) + (44 if title else 12),
        margin=(8, 8, 4, 40 if title else 8),
    )


def grouped_bars(
    names: Sequence[str],
    groups: Mapping[str, np.ndarray],
    *,
    barmode: Literal["group", "stack", "relative", "overlay"] = "group",
    colours: Sequence[str] = (),
    log: bool = False,
    x: Mapping[str, Any] | None = None,
    y: Mapping[str, Any] | None = None,
    framed: int | None = None,
    x_title: str = "",
    y_title: str = "",
    digits: str = "",
    tip: str = ".4~g",
    most: int | None = None,
) -> style.Figure:
    """Draw vertical bars for each name: one for each group, side by side or in another of plotly's modes.

    groups: {legend entry: values, (N,)}; on a logarithmic axis, only values above 0 have a bar. colours: of the groups,
    by name in PALETTE. x, y: options of the axes. digits: format for the number on each bar, if there are few bars.
    """
    several = len(groups) > 1
    colours = colours or (_PAIR[-len(groups) :] if len(groups) <= 2 else _FOUR)
    data = []
    for (name, values), colour in zip(groups.items(), colours, strict=False):
        bars = _bars(np.arange(len(names)), style.floats(values), name, style.LIGHT[colour], tip)
        if digits and len(names) <= _LABELLED // 2:
            bars |= _numbers([f"{value:{digits}}" for value in values])
        data.append(bars)
    upwards = (
        style.log_axis(y_title, list(groups.values())) if log else style.axis(y_title, zero=True, rangemode="tozero")
    )
    return style.figure(
        data,
        style.names_axis([*map(style.escape, names)], x_title, most=most, keep=framed, automargin=True, **(x or {})),
        upwards | dict(y or {}),
        height=300,
        margin=(64, 8, 32 if several or digits else 8, 44),
        barmode=barmode,
        bargap=0.3 if len(names) <= 48 else 0,
        uniformtext={"minsize": 9, "mode": "hide"},
        showlegend=several,
        shapes=[] if framed is None else [style.outline((framed, framed))],
    )


def layer_bars(parts: Mapping[str, np.ndarray], ends: Sequence[tuple[str, float]]) -> style.Figure:
    """Draw what each layer adds to a logit, as two vertical bars.

    parts: {legend entry: (n_layer,)}, attention and the feed-forward network. ends: name and value of each contribution
    from outside the layers, shown on the left.
    """
    n_layer, outside = len(next(iter(parts.values()))), np.full(len(ends), np.nan)
    every = -(-n_layer // 12)
    drawn = grouped_bars(
        [*(name for name, _ in ends), *("" if layer % every else str(layer) for layer in range(n_layer))],
        {name: np.concatenate([outside, values]) for name, values in parts.items()},
        colours=("attention", "text"),
        x_title=t("stream.layer"),
        y_title=t("why.parts.logit"),
        tip="+.3f",
    )
    for bars in drawn["data"]:
        bars["hovertemplate"] = bars["hovertemplate"].removeprefix("%{x}: ")  # most layers have no name
    place = {"width": 0.6, "offset": -0.3, "showlegend": False}
    drawn["data"].append(
        _bars(np.arange(len(ends)), style.floats([x for _, x in ends]), "", style.LIGHT["muted"], "+.3f", **place)
    )
    return drawn


def divergence_bars(
    series: Mapping[str, np.ndarray],
    labels: Sequence[str],
    *,
    selected: int | None = None,
    first: int = 0,
) -> style.Figure:
    """Draw one bar per token: the divergence between two next-token predictions, in bits.

    series: {legend entry: (N,)}; with two entries, the first is wide and light, the second narrow and dark. An infinite
    value reaches the top and shows an infinity sign. labels: the N tokens before the predictions; the first is at
    position `first` in the text. selected: the index to mark.
    """
    bits, title = np.stack([*series.values()]), t("strip.unit")
    endless = np.isinf(bits)
    top = max(0.1, 1.2 * float(bits[~endless].max(initial=0)))
    across = {"range": [-0.6, len(labels) - 0.4], "tickangle": -90, "tickfont": style.LABEL | {"size": 11}}
    drawn = grouped_bars(
        [shortened(label, 14) for label in labels],
        dict(zip(series, np.where(endless, top, bits), strict=True)),
        barmode="overlay",
        x=across,
        y={"range": [0, top], "nticks": 5},
        framed=selected,
        y_title=title,
        most=_MAX_TICKS,
    )
    for i, (bars, values) in enumerate(zip(drawn["data"], bits, strict=True)):
        texts = ["∞" if np.isinf(value) else "" for value in values]
        bars |= _numbers(texts) | {"width": (0.76, 0.36)[i], "textfont": {"color": style.LIGHT["text"], "size": 14}}
        bars |= {"hovertemplate": "%{customdata}<extra></extra>"}
        bars["customdata"] = [
            f"{style.token_label(label)}  {first + at}: {text or f'{value:.3f}'} {style.escape(title)}"
            for at, (label, value, text) in enumerate(zip(labels, values, texts, strict=True))
        ]
    above = 8 + 20 * (len(bits) > 1) + 16 * bool(endless.any())
    drawn["layout"]["margin"] = {"l": 52, "r": 8, "t": above, "b": 8}
    drawn["layout"]["hovermode"] = "x" if len(bits) > 1 else "closest"
    return drawn


def histogram(counts: np.ndarray, edges: np.ndarray, *, x_title: str, y_title: str) -> style.Figure:
    """Draw adjacent bars between the edges. counts: numbers or shares, (N,); edges: ascending, (N + 1,)."""
    bars = {
        "type": "bar",
        "x": style.floats((edges[:-1] + edges[1:]) / 2),
        "y": style.floats(counts),
        "width": style.floats(np.diff(edges)),
        "marker": {
            "color": style.LIGHT["after"],
            "line": {"color": style.LIGHT["card"], "width": 0 if len(counts) > 200 else 0.5},
        },
        "hovertemplate": f"{style.escape(x_title)} %{{x:.4~g}}<br>{style.escape(y_title)} %{{y:.4~g}}<extra></extra>",
    }
    across = style.axis(x_title, zero=True, range=[float(edges[0]), float(edges[-1])])
    upwards = style.axis(y_title, zero=True, rangemode="tozero")
    return style.figure([bars], across, upwards, height=260, margin=(56, 12, 8, 40), bargap=0)


def row_bars(rows: np.ndarray, names: Sequence[str], means: np.ndarray, stds: np.ndarray) -> style.Figure:
    """Draw (n, C) rows as bar charts on a common scale, with a line at each mean (n,) and a band of its std (n,)."""
    rows = style.floats(rows)
    n, width = rows.shape
    low, high = min(0.0, float(rows.min())), max(0.0, float(rows.max()))
    room = 0.16 * (high - low or 1)
    data, shapes, notes = [], [], []
    axes: dict[str, Any] = {}
    for i, (row, name, mean, std) in enumerate(zip(rows, names, map(float, means), map(float, stds), strict=True)):
        number, top = "" if i == 0 else str(i + 1), 1 - i / n
        tip = f"{style.escape(t('norm.place'))} %{{x}}: %{{y:.4f}}<extra></extra>"
        place = {"xaxis": f"x{number}", "yaxis": f"y{number}", "hovertemplate": tip}
        bars = _bars(np.arange(width), row, "", style.LIGHT["after"], "", **place)
        data.append(bars | (_numbers([decimal(value, 4) for value in row]) if width <= _LABELLED else {}))
        over = {"xref": f"x{number} domain", "yref": f"y{number}", "x0": 0, "x1": 1}
        deviation = {"type": "rect", "y0": mean - std, "y1": mean + std, "line": {"width": 0}}
        shapes.append(over | deviation | {"fillcolor": style.LIGHT["before"], "opacity": 0.35, "layer": "below"})
        shapes.append(style.rule(y=mean, dash="dash") | over)
        above = {"x": 0, "xanchor": "left", "y": top - 0.07, "yanchor": "bottom"}
        notes.append(
            style.note(style.escape(name), **style.ON_PAPER, **above, font=style.SMALL | {"color": style.LIGHT["text"]})
        )
        upwards = {"domain": [top - 1 / n + 0.06, top - 0.08], "range": [low - room * (low < 0), high + room]}
        axes[f"yaxis{number}"] = style.axis(zero=True, nticks=5) | upwards
        axes[f"xaxis{number}"] = style.bare_axis(anchor=f"y{number}", showticklabels=False, range=[-0.6, width - 0.4])
    layout = axes | {"shapes": shapes, "annotations": notes, "showlegend": False, "bargap": 0.25}
    return style.figure(data, axes["xaxis"], axes["yaxis"], height=150 * n + 10, margin=(40, 8, 4, 4), **layout)


class Cell(NamedTuple):
    """Part of a word: its text, its width in bytes, whether this row's merge produced it, and its tooltip."""

    text: str
    width: int
    joined: bool = False
    tip: str = ""


def merge_ladder(rows: Sequence[Sequence[Cell]]) -> style.Figure:
    """Draw one row per merge, from bytes at the top to tokens at the bottom, highlighting the result of each merge."""
    ends = [np.cumsum([cell.width for cell in line]).tolist() for line in rows]
    cells = [(row, end, cell) for row, line in enumerate(rows) for end, cell in zip(ends[row], line, strict=True)]
    inks = [style.LIGHT["on_primary" if cell.joined else "text"] for _, _, cell in cells]
    bars = _FLAT | {
        "y": [row for row, _, _ in cells],
        "base": [end - cell.width for _, end, cell in cells],
        "x": [cell.width for _, _, cell in cells],
        "width": 0.84,
        "text": [style.escape(cell.text) for _, _, cell in cells],
        "customdata": [style.escape(f"{cell.text} {cell.tip}".strip()) for _, _, cell in cells],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "constraintext": "none",
        "textfont": {"family": style.MONO, "size": 11, "color": inks},
        "marker": {
            "color": [style.LIGHT["after" if cell.joined else "before"] for _, _, cell in cells],
            "line": {"color": style.LIGHT["card"], "width": 2},
        },
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    return style.figure(
        [bars],
        style.bare_axis(showticklabels=False, range=[0, max((line[-1] for line in ends if line), default=1)]),
        style.bare_axis(showticklabels=False, range=[len(rows) - 0.5, -0.5]),
        height=26 * len(rows) + 8,
        margin=(0, 0, 4, 4),
        barmode="overlay",
    )
