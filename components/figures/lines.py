"""Draw lines and points from NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from components.figures import style
from components.i18n import t

MAX_POINTS = 300  # maximum number of points in a training loss curve; more are averaged in groups
ZERO_AT = 0.5  # position of step 0 on the logarithmic step axis
_SYMBOLS = ("circle", "square", "diamond")
_PATHS = [*zip(2 * style.CURVES[:3], ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot"), strict=True)]


def _curve(
    x: np.ndarray, y: Any, name: str, colour: str, dash: str = "solid", *, size: float = 0, width: float = 2
) -> style.Trace:
    """Return a line, with a marker at each point if `size` is not 0. name: escaped."""
    line = {"color": colour, "dash": dash, "width": width}
    marks = {"mode": "lines+markers", "marker": {"color": colour, "size": size}} if size else {"mode": "lines"}
    tip = f"%{{x}}: %{{y:.4~g}}<extra>{name}</extra>"
    return {"type": "scatter", "name": name, "x": x, "y": style.floats(y), "line": line, "hovertemplate": tip} | marks


def lines(
    x: np.ndarray,
    series: Mapping[str, np.ndarray],
    *,
    x_title: str,
    y_title: str,
    log_y: bool = False,
    level_at: tuple[str, float] | None = None,
    mark: tuple[str, float] | None = None,
    ticks: Sequence[str] | None = None,
) -> style.Figure:
    """Draw up to four lines over one x axis, distinguished by hue and dash.

    x and each series: (N,). level_at: name and y of a horizontal line; mark: name and x of a vertical line. ticks: tick
    labels, one token per x.
    """
    size = 6 if len(x) <= 40 else 0
    data = [
        _curve(x, y, style.escape(name), colour.light, dash, size=size)
        for (name, y), colour, dash in zip(series.items(), style.CURVES, style.DASHES, strict=False)
    ]
    across = style.axis(x_title, automargin=True)
    if ticks is not None:
        font = style.SMALL | {"color": style.LIGHT["text"]}
        across = style.names_axis(
            [*map(style.token_label, ticks)], x_title, most=24, automargin=True, tickangle=-90, tickfont=font
        )
    upwards = style.axis(y_title, zero=True, rangemode="tozero", exponentformat="power")
    shapes, notes = [], []
    if level_at is not None:
        name, y = level_at
        shapes.append(style.rule(y=y, color=style.LIGHT["muted"], dash="dot"))
        notes.append(style.note(style.escape(name), xref="paper", x=1, xanchor="right", y=y, yanchor="bottom"))
    if mark is not None:
        name, place = mark
        shapes.append(style.rule(x=place, dash="dot"))
        notes.append(
            style.note(style.escape(name), yref="paper", y=1, yanchor="top", x=place, xanchor="left", xshift=4)
        )
    return style.figure(
        data,
        across,
        style.log_axis(y_title, list(series.values())) if log_y else upwards,
        height=300,
        showlegend=len(series) > 1,
        shapes=shapes,
        annotations=notes,
    )


def path_lines(
    probability: np.ndarray,
    rank: np.ndarray,
    stages: Sequence[str],
    tokens: Sequence[str],
) -> style.Figure:
    """Draw the probability (above) and the rank (below, 1 on top, logarithmic) of up to six tokens across the layers.

    probability, rank: (N, 2 n_layer), after each layer's attention and after its feed-forward network. stages: names of
    these stages. tokens: (N,), distinguished by hue and dash.
    """
    n_layer, several, rank_title = len(stages) // 2, len(tokens) > 1, t("strip.shading.rank")
    positions = style.floats(np.arange(len(stages)) / 2)
    data: list[style.Trace] = []
    for token, p, ranks, (colour, dash) in zip(tokens, probability, rank, _PATHS, strict=False):
        name = style.token_label(token)
        tip = f"{name} %{{customdata}}: ".lstrip()
        line = _curve(positions, p, name, colour.light, dash, size=5)
        line |= {"customdata": list(stages), "legendgroup": name}
        below = {"y": ranks, "yaxis": "y2", "showlegend": False}
        data += [
            line | {"hovertemplate": f"{tip}%{{y:.2%}}<extra></extra>"},
            line | below | {"hovertemplate": f"{tip}{style.escape(rank_title)} %{{y:,}}<extra></extra>"},
        ]
    top = float(np.log10(max(10, int(np.max(rank, initial=1)))))
    layers = list(range(0, n_layer, max(1, -(-n_layer // 12))))
    ranks = {"type": "log", "range": [1.05 * top, -0.08 * top], "tickvals": [10**i for i in range(int(top) + 1)]}
    return style.figure(
        data,
        style.axis(t("stream.layer"), range=[-0.2, n_layer - 0.3], anchor="y2", tickvals=layers),
        style.axis(t("pipeline.probability"), domain=[0.54, 1], range=[-0.04, 1.04], tickformat=".0%", nticks=3),
        yaxis2=style.axis(rank_title, domain=[0, 0.46], tickformat=",d") | ranks,
        height=336 if several else 300,
        margin=(64, 12, 44 if several else 8, 40),
        showlegend=several,
        legend=style.LEGEND | {"font": style.LABEL},
        hovermode="x",
    )


def stage_lines(
    labels: Sequence[str],
    token_ids: Sequence[int],
    values: np.ndarray,
    ends: Sequence[str],
    *,
    stages: Sequence[str],
    followed: int,
    title: str,
    percent: bool = False,
) -> style.Figure:
    """Draw one line per token across the stages, ending with a cross at the stage that removed the token.

    values: (tokens, stages), NaN once removed; the first stage is the raw input. ends: labels at the right end of the
    remaining lines, "" for the others. followed: the highlighted row. A point's customdata is its token id.
    """
    values = np.asarray(values, np.float64)
    height, above, below = 320, 8, 44
    finite = values[np.isfinite(values)]
    low, high = 0.0 if percent else float(finite.min()), float(finite.max())
    room = 0.05 * ((high - low) or 1.0)
    low, high = low - room, high + room
    apart = 14 * (high - low) / (height - above - below)  # at least 14 pixels between two names
    order = [row for row in range(len(labels)) if row != followed] + [followed]  # draw the followed token on top
    notes = []
    for x, heights, texts in (
        (0, values[:, 0], [style.token_label(label, longest=11) for label in labels]),
        (1, np.where([bool(end) for end in ends], values[:, -1], np.nan), [style.escape(end) for end in ends]),
    ):
        rows = [row for row in np.argsort(-heights, kind="stable") if np.isfinite(heights[row])]
        place = {"xref": "paper", "x": x, "xanchor": "left" if x else "right", "xshift": 8 if x else -8}
        for row, y in zip(rows, spread(heights[rows], apart, low + apart / 2, high), strict=True):
            font = style.SMALL | {"color": style.LIGHT["text" if row == followed else "muted"]}
            notes.append(style.note(texts[row], y=y, yanchor="middle", font=font, **place))
    names = {"tickvals": list(range(len(stages))), "ticktext": [style.escape(name) for name in stages], "tickangle": 0}
    upwards = style.bare_axis(range=[low, high], showticklabels=False)
    return style.figure(
        [_stage_line(labels[row], token_ids[row], values[row], own=row == followed) for row in order],
        style.axis(range=[0, len(stages) - 1], tickfont={"size": 11}, ticks="") | names,
        upwards | {"title": {"text": style.escape(title), "font": {"size": 11}, "standoff": 78}},
        height=height,
        margin=(92, 60, above, below),
        showlegend=False,
        annotations=notes,
    )


def _stage_line(label: str, token_id: int, values: np.ndarray, *, own: bool) -> style.Trace:
    heights = values[np.isfinite(values)].tolist()
    symbols, sizes = ["circle"] * len(heights), [4] * len(heights)
    if 0 < len(heights) < len(values):  # draw the cross at the height of the last stage that kept the token
        heights, symbols, sizes = [*heights, heights[-1]], [*symbols, "x"], [*sizes, 8]
    colour, name = style.LIGHT["text" if own else "after"], style.token_label(label)
    line = _curve(np.arange(len(heights)), heights, name, colour, size=4, width=2.5 if own else 1.25)
    return line | {
        "y": heights,
        "customdata": [token_id] * len(heights),
        "marker": {"color": colour, "size": sizes, "symbol": symbols},
        "opacity": 1.0 if own else 0.7,
        "cliponaxis": False,
        "hovertemplate": f"{name}<br>%{{y:.4~g}}<extra></extra>",
    }


def spread(heights: np.ndarray, gap: float, low: float, high: float) -> list[float]:
    """Move descending heights at least `gap` apart, within low..high if there is room."""
    apart: list[float] = []
    for height in heights:
        apart.append(min(float(height), apart[-1] - gap if apart else high))
    for i in reversed(range(len(apart))):
        apart[i] = max(apart[i], low)
        low = apart[i] + gap
    return apart


def activation_curves(
    x: np.ndarray, curves: Mapping[str, np.ndarray], derivatives: Mapping[str, np.ndarray], *, at: float, flat: float
) -> style.Figure:
    """Draw functions above their derivatives on one x axis, with a line at `at` and the values there in the legend.

    x: ascending, (N,); each curve and derivative has the same shape. flat: x at which the first function's slope is
    zero, marked in both charts. There are at most three functions, distinguished by hue and dash.
    """
    panels = {"y": curves, "y2": derivatives}
    slope, no_slope = t("activations.slope"), t("activations.flat")
    data: list[style.Trace] = []

    def point(where: float, place: str, name: str, **look: Any) -> style.Trace:
        y = float(np.interp(where, x, panels[place][name]))
        return {"x": [where], "y": [y], "mode": "markers", "yaxis": place, "showlegend": False} | look

    for name, pair, dash in zip(curves, style.CURVES, style.DASHES, strict=False):
        dot = {"color": pair.light, "size": 8, "line": {"color": style.LIGHT["card"], "width": 2}}
        points = {place: point(at, place, name, marker=dot) for place in panels}
        here, there = (f"{each['y'][0]:+.4f}".replace("-", "−") for each in points.values())
        readout = f"{style.escape(name)} <b>{here}</b> · {style.escape(slope)} <b>{there}</b>"
        for place, dotted in points.items():
            curve = _curve(style.floats(x), panels[place][name], readout, pair.light, dash)
            curve["line"]["simplify"] = False
            data += [curve | {"yaxis": place, "showlegend": place == "y"}, dotted]
    text = f"{style.escape(no_slope)} · x = {flat:.4f}".replace("-", "−")
    diamond = {"symbol": "diamond-open", "size": 10, "color": style.LIGHT["text"], "line": {"width": 1.5}}
    label = {"mode": "markers+text", "text": [text], "textposition": "bottom center", "textfont": {"size": 11}}
    for place, look in (("y", label), ("y2", {})):
        data.append(point(flat, place, next(iter(curves)), marker=diamond, cliponaxis=False) | look)
    return style.figure(
        [trace | {"type": "scatter", "hoverinfo": "none", "hovertemplate": None} for trace in data],
        style.axis("x", zero=True, range=[float(x[0]), float(x[-1])], anchor="y2"),
        style.axis(t("activations.function"), zero=True, domain=[0.54, 1]),
        yaxis2=style.axis(slope, zero=True, domain=[0, 0.46]),
        height=480,
        margin=(56, 12, 8, 40),
        legend=style.LEGEND | {"y": 1, "font": {"family": style.MONO, "size": 11}},
        shapes=[style.rule(x=at)],
        hovermode="x",
    )


Share = tuple[str, np.ndarray, str]  # a curve's name, its values at the evaluations in 0..1, (k,), and a palette colour


def learning_curve(
    losses: np.ndarray,
    rates: np.ndarray,
    eval_steps: np.ndarray,
    val_losses: np.ndarray,
    shares: Sequence[Share],
    *,
    steps: int,
    n_vocab: int,
    copy_losses: np.ndarray | None = None,
    shown: int,
) -> style.Figure:
    """Draw the loss over the steps on a logarithmic axis, with any shares below.

    If there are losses, the learning rate is also shown. A line is at the loss of a uniform guess.
    losses, rates: values at updates 1 to n, (n,). eval_steps, val_losses, copy_losses: values at the evaluations, (k,).
    """
    names = {name: style.escape(t(f"train.curve.{name}")) for name in ("step", "training", "held_back", "copy")}
    at, looked_at = np.arange(1, len(losses) + 1), style.floats(np.maximum(eval_steps, ZERO_AT))
    guessing, across = math.log(n_vocab), log_grouped(at, MAX_POINTS)
    data: list[style.Trace] = []
    if len(losses):
        data.append(
            _curve(across, log_grouped(losses, MAX_POINTS), names["training"], style.LIGHT["before"], width=1.5)
        )
    data.append(_curve(looked_at, val_losses, names["held_back"], style.LIGHT["after"], size=5))
    if copy_losses is not None:
        data.append(_curve(looked_at, copy_losses, names["copy"], style.CURVES[1].light, size=5))
    highest = max(guessing, *(float(each["y"].max()) for each in data))
    panels, lowest = {}, 0.24 if len(losses) else 0.0  # from top to bottom: loss, shares, rates
    if shares:
        scale = {"range": [0, 104], "tickvals": [0, 50, 100]}
        panels["yaxis2"] = style.axis(t("train.curve.shares"), domain=[lowest, 0.46]) | scale
        for (name, values, colour), dash in zip(shares, style.DASHES, strict=False):
            line = _curve(looked_at, 100 * values, style.escape(name), style.LIGHT[colour], dash, size=5)
            data.append(line | {"yaxis": "y2"})
    if len(losses):
        panels["yaxis3"] = style.axis(t("train.curve.rate"), domain=[0.0, 0.14], rangemode="tozero", nticks=3)
        line = _curve(across, log_grouped(rates, MAX_POINTS), "", style.LIGHT["muted"], width=1.5)
        data.append(line | {"yaxis": "y3", "showlegend": False})
    for trace in data:
        trace["hovertemplate"] = f"{names['step']} %{{x:.0f}}: %{{y:.4~g}}<extra></extra>"
    ticks = [tick for tick in (1, 3, 10, 30, 100, 300, 1000, 3000) if tick <= steps]
    numbers = {"tickvals": [ZERO_AT, *ticks], "ticktext": ["0", *(f"{tick:,}" for tick in ticks)]}
    whole = [math.log10(ZERO_AT) - 0.05, math.log10(max(steps, 2)) + 0.03]
    bottom = "y3" if len(losses) else "y2" if shares else "y"
    guess = style.escape(t("train.curve.guessing", n=f"{n_vocab:,}"))
    return style.figure(
        data,
        style.axis(t("train.curve.step"), type="log", range=whole, anchor=bottom) | numbers,
        style.axis(t("train.curve.loss"), domain=[0.56 if shares else lowest + 0.04, 1.0], range=[0, 1.2 * highest]),
        height=380 if shares else 320,
        margin=(56, 12, 8, 40),
        shapes=[style.rule(y=guessing, color=style.LIGHT["muted"], dash="dot"), style.rule(x=max(shown, ZERO_AT))],
        annotations=[style.note(guess, xref="paper", x=1, y=guessing, xanchor="right", yanchor="bottom")],
        **panels,
    )


def log_grouped(values: np.ndarray, most: int) -> np.ndarray:
    """Average (n,) values within up to `most` adjacent groups with log-spaced ends, as float32."""
    n = len(values)
    if n <= most:
        return style.floats(values)
    starts = np.unique(np.geomspace(1, n + 1, most + 1).astype(int)[:-1]) - 1
    sizes = np.diff([*starts, n])
    return style.floats(np.add.reduceat(np.asarray(values, dtype=np.float64), starts) / sizes)


class ScalingLine(NamedTuple):
    """One line in a scaling chart; lines with the same index share colour, dash and marker in all three charts."""

    name: str
    x: np.ndarray
    y: np.ndarray


def scaling_curves(
    models: Sequence[ScalingLine],
    others: Sequence[ScalingLine],
    star: ScalingLine,
    *,
    x_title: str,
    moments: bool = False,
) -> style.Figure:
    """Draw the loss against a quantity on logarithmic axes, without a legend. `star` is a separate point.

    others: lines for another architecture, with the last models' colours and open markers. moments: whether the
    lines stand for moments during training instead of models; early ones are lighter, and each has its name above it.
    """
    tip = {"hovertemplate": "%{x:.3s}: %{y:.3f}"}
    data = []
    for n, line in enumerate([*models, *others]):
        i = n if n < len(models) else n - len(others)
        colour = style.SEQUENTIAL[3 + 4 * (i + 1) // len(models)] if moments else style.CURVES[i % 3]
        mark, dash = _SYMBOLS[i % 3], style.DASHES[i % 3]
        if n >= len(models):
            mark, dash = f"{mark}-open", "dot"
        data.append(_curve(style.floats(line.x), line.y, style.escape(line.name), colour.light, dash, size=6) | tip)
        data[-1]["marker"]["symbol"] = mark
    shown: dict[str, Any] = {"mode": "markers", "marker": {"color": style.LIGHT["text"], "size": 12, "symbol": "star"}}
    data.append(_curve(style.floats(star.x), star.y, style.escape(star.name), style.LIGHT["text"]) | shown | tip)
    ys = np.concatenate([line.y for line in (*models, *others, star)])
    ticks = [tick for tick in (1, 1.5, 2, 3, 4, 6, 8, 10) if ys.min() * 0.9 <= tick <= ys.max() * 1.1]
    return style.figure(
        data,
        style.axis(x_title, type="log", tickformat="~s", dtick=1),
        style.axis(t("scaling.loss"), type="log", tickvals=ticks),
        height=320,
        margin=(48, 12, 24, 44),
        showlegend=False,
        annotations=[
            style.note(
                style.escape(line.name),
                x=math.log10(line.x[0]),
                y=math.log10(line.y[0]),
                xanchor="left",
                yanchor="bottom",
                yshift=4,
            )
            for line in (models if moments else ())
        ],
    )


def circles(pairs: Sequence[tuple[str, float, float]]) -> style.Figure:
    """Draw a unit circle for each dimension pair, with one hand for the query and one for the key.

    pairs: each one's name, and the query's and the key's angle in radians, counter-clockwise from the x axis.
    """
    apart = 2.5  # distance between the centres
    centres = [apart * i for i in range(len(pairs))]
    names, *hands = zip(*pairs, strict=True)
    data = []
    for key, angles, colour, dash in zip(("query", "key"), hands, style.CURVES, style.DASHES, strict=False):
        x, y = [], []
        for centre, angle in zip(centres, angles, strict=True):
            x += [centre, centre + math.cos(angle), np.nan]
            y += [0, math.sin(angle), np.nan]
        marker = {"color": colour.light, "size": [0, 9, 0] * len(pairs), "opacity": 1}
        name = style.escape(t(f"positions.{key}"))
        hand = _curve(style.floats(x), style.floats(y), name, colour.light, dash, size=9, width=3)
        data.append(hand | {"marker": marker, "hovertemplate": None, "hoverinfo": "skip"})
    rim = {"type": "circle", "y0": -1, "y1": 1, "line": {"color": style.LIGHT["muted"], "width": 1}}
    below = {"y": -1.1, "yanchor": "top", "font": style.SMALL | {"color": style.LIGHT["text"]}}
    hidden = {"showticklabels": False, "constrain": "domain"}
    return style.figure(
        data,
        style.bare_axis(range=[-1.15, (len(pairs) - 1) * apart + 1.15]) | hidden,
        style.bare_axis(range=[-1.6, 1.15], scaleanchor="x", constraintoward="top") | hidden,
        height=200,
        margin=(4, 4, 32, 4),
        shapes=[rim | {"x0": centre - 1, "x1": centre + 1} for centre in centres],
        annotations=[
            style.note(style.escape(name), x=centre, **below) for name, centre in zip(names, centres, strict=True)
        ],
    )
