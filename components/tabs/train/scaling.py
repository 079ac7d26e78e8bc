"""The scaling part of the Train tab: loss against tokens, compute and parameters, from recorded runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from components.cards.card import Card
from components.figures.lines import ScalingLine, scaling_curves
from components.i18n import t
from components.kit import card, column, columns, lead, picture, question, says
from components.labels import power
from components.widgets.chart import Drawing
from gpt.experiments.shapes import Scaling, ScalingCurve, ScalingPoint, load_scaling

MOMENTS = 4  # lines in the chart of loss against parameters, one per point in training
FIRST = 4  # points omitted at the beginning of a curve


@dataclass(frozen=True)
class Parts:
    """Scaling curves for the GPT-2-style models (smallest first), the Llama-style models and the bundled model."""

    curves: tuple[ScalingCurve, ...]
    llama: tuple[ScalingCurve, ...]
    bundled: ScalingCurve

    @classmethod
    def of(cls, found: Scaling) -> Parts:
        return cls(found.curves[:-1], found.llama, found.curves[-1])

    @property
    def last(self) -> int:
        """Index of the last point shared by all curves."""
        return min(len(curve.points) for curve in self.curves) - 1

    @property
    def tokens(self) -> tuple[int, int]:
        """The smallest and the largest number of tokens read."""
        ends = [curve.points[-1].tokens for curve in self.curves]
        return min(ends), max(ends)


def by_tokens(found: Scaling) -> Drawing:
    parts = Parts.of(found)
    small, large = (curve.points[parts.last] for curve in (parts.curves[0], parts.curves[-1]))
    text = t("scaling.by.tokens", tokens=short(large.tokens), gain=f"{small.loss - large.loss:.2f}")
    ends = parts.curves[-1].points[-1].loss, parts.llama[-1].points[-1].loss
    text += " " + t("scaling.by.llama", gpt2=f"{ends[0]:.2f}", llama=f"{ends[1]:.2f}")
    return _along(parts, "tokens", lambda point: point.tokens, text)


def by_flops(found: Scaling) -> Drawing:
    parts = Parts.of(found)
    budget = min(curve.points[-1].flops for curve in parts.curves)
    best = min(parts.curves, key=lambda curve: loss_at(curve, budget))
    times = f"{parts.bundled.points[-1].flops / budget:.0f}"
    text = t("scaling.by.flops", flops=short(budget), best=named(best), times=times)
    return _along(parts, "flops", lambda point: point.flops, text)


def loss_at(curve: ScalingCurve, flops: float) -> float:
    """Return the loss after a number of FLOPs, interpolated on a logarithmic FLOP axis."""
    x = np.log([point.flops for point in curve.points])
    return float(np.interp(np.log(flops), x, [point.loss for point in curve.points]))


def by_parameters(found: Scaling) -> Drawing:
    """Plot the loss against parameters, with one line for each of several points in training."""
    parts = Parts.of(found)
    sizes = np.array([curve.block_parameters for curve in parts.curves])
    moments = np.unique(np.linspace(FIRST, parts.last, MOMENTS, dtype=int))
    lines = [
        ScalingLine(
            t("scaling.after", n=short(parts.curves[0].points[i].tokens)),
            sizes,
            np.array([curve.points[i].loss for curve in parts.curves]),
        )
        for i in moments
    ]
    llama = ScalingLine(
        t("scaling.llama", name=lines[-1].name),
        np.array([curve.block_parameters for curve in parts.llama]),
        np.array([curve.points[parts.last].loss for curve in parts.llama]),
    )
    text, at = t("scaling.by.parameters"), parts.bundled.block_parameters
    return _drawn(lines, [llama], parts, "parameters", at, text)


def _along(parts: Parts, axis: str, x: Callable[[ScalingPoint], float], text: str) -> Drawing:
    def line(name: str, curve: ScalingCurve) -> ScalingLine:
        points = curve.points[FIRST:]
        return ScalingLine(name, np.array([x(point) for point in points]), np.array([point.loss for point in points]))

    lines = [line(named(curve), curve) for curve in parts.curves]
    others = [line(t("scaling.llama", name=named(curve)), curve) for curve in parts.llama]
    return _drawn(lines, others, parts, axis, x(parts.bundled.points[-1]), text)


def _drawn(
    lines: list[ScalingLine],
    others: list[ScalingLine],
    parts: Parts,
    axis: str,
    x: float,
    text: str,
) -> Drawing:
    loss = parts.bundled.points[-1].loss
    star = ScalingLine(t("scaling.bundled"), np.array([x]), np.array([loss]))
    figure = scaling_curves(
        lines,
        others,
        star,
        x_title=t(f"scaling.{axis}"),
        moments=axis == "parameters",
    )
    return figure, text


def legend(found: Scaling) -> str:
    """Name the markers of the first two charts, see `scaling_curves`."""
    parts = Parts.of(found)
    sizes = dict(
        zip(("small", "middle", "large"), (short(curve.block_parameters) for curve in parts.curves), strict=True)
    )
    return t("scaling.legend", **sizes, bundled=t("scaling.bundled"))


def limitations(found: Scaling) -> str:
    parts = Parts.of(found)
    end, (fewest, most) = parts.bundled.points[-1], parts.tokens
    return t(
        "scaling.honest",
        vocabulary="4,096",
        tokens=short(most) if fewest == most else f"{short(fewest)}–{short(most)}",
        name=t("scaling.bundled"),
        parameters=short(parts.bundled.block_parameters),
        more=f"{end.tokens / most:.0f}",
        loss=f"{end.loss:.2f}",
        bits=f"{end.bits_per_byte:.3f}",
        command=found.command,
    )


def named(curve: ScalingCurve) -> str:
    return t("scaling.name", n=short(curve.block_parameters))


def short(number: float) -> str:
    """Format a number with two significant digits: 1.2 M, 380 k, 3.4 × 10¹³."""
    if number >= 1e12:
        return power(number)
    for size, unit in ((1e6, "\u00a0M"), (1e3, "\u00a0k")):
        if number >= size:
            return f"{float(f'{number:.2g}') / size:g}{unit}"
    return f"{number:g}"


PICTURES = {"tokens": by_tokens, "flops": by_flops, "parameters": by_parameters}  # keyed by horizontal axis


def scaling_card() -> Callable[[], Card]:
    def drawn(draw: Callable[[Scaling], Drawing], s: Any) -> Drawing:
        return draw(load_scaling())

    charts = (column(picture(f"scaling-{axis}", partial(drawn, draw))) for axis, draw in PICTURES.items())
    return card(
        "scaling",
        question("scaling.question"),
        lead("scaling.lead"),
        says("scaling-legend", lambda s: legend(load_scaling()), kind="caption"),
        columns(*charts),
        says("scaling-honest", lambda s: limitations(load_scaling()), kind="caption"),
    )
