"""The scaling part of the Train tab: loss against tokens, compute and parameters, from recorded runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np

from components import kit
from components.cards.card import Card
from components.figures.lines import ScalingLine, scaling_curves
from components.figures.style import Figure
from components.i18n import t
from components.labels import power
from components.widgets.chart import Drawing
from gpt.experiments.shapes import Scaling, ScalingCurve, load_scaling

T = TypeVar("T")
MOMENTS = 4  # lines in the chart of loss against parameters, one per point in training
FIRST = 4  # points omitted at the beginning of a curve


def last_shared(found: Scaling) -> int:
    """Return the index of the last point shared by all GPT-2-style models."""
    return min(len(curve.loss) for curve in found.curves[:-1]) - 1


def by_tokens(found: Scaling) -> Drawing:
    smallest, largest, at = found.curves[0], found.curves[-2], last_shared(found)
    gpt2, llama = (f"{curve.loss[-1]:.2f}" for curve in (largest, found.llama[-1]))
    gain = f"{smallest.loss[at] - largest.loss[at]:.2f}"
    text = t("scaling.by.tokens", tokens=short(largest.tokens[at]), gain=gain)
    return _along("tokens", found, f"{text} {t('scaling.by.llama', gpt2=gpt2, llama=llama)}")


def by_flops(found: Scaling) -> Drawing:
    *models, bundled = found.curves
    budget = min(curve.flops[-1] for curve in models)

    def loss_within(curve: ScalingCurve) -> float:
        """Return the loss after as many FLOPs, interpolated on a logarithmic FLOP axis."""
        return float(np.interp(np.log(budget), np.log(curve.flops), curve.loss))

    times = f"{bundled.flops[-1] / budget:.0f}"
    best = named(min(models, key=loss_within))
    return _along("flops", found, t("scaling.by.flops", flops=short(budget), best=best, times=times))


def by_parameters(found: Scaling) -> Drawing:
    """Plot the loss against parameters, with one line for each of several points in training."""
    *models, bundled = found.curves

    def line(name: str, curves: Sequence[ScalingCurve], at: int) -> ScalingLine:
        sizes = np.array([curve.block_parameters for curve in curves])
        return ScalingLine(name, sizes, np.array([curve.loss[at] for curve in curves]))

    last = last_shared(found)
    moments = np.unique(np.linspace(FIRST, last, MOMENTS, dtype=int))
    lines = [line(t("scaling.after", n=short(models[0].tokens[at])), models, at) for at in moments]
    llama = line(t("scaling.llama", name=lines[-1].name), found.llama, last)
    figure = _figure("parameters", lines, [llama], bundled, bundled.block_parameters)
    return figure, t("scaling.by.parameters")


def _along(axis: Literal["tokens", "flops"], found: Scaling, text: str) -> Drawing:
    *models, bundled = found.curves

    def line(name: str, curve: ScalingCurve) -> ScalingLine:
        return ScalingLine(name, getattr(curve, axis)[FIRST:], curve.loss[FIRST:])

    lines = [line(named(curve), curve) for curve in models]
    others = [line(t("scaling.llama", name=named(curve)), curve) for curve in found.llama]
    return _figure(axis, lines, others, bundled, getattr(bundled, axis)[-1]), text


def _figure(axis: str, lines: list[ScalingLine], others: list[ScalingLine], bundled: ScalingCurve, x: float) -> Figure:
    star = ScalingLine(t("scaling.bundled"), np.array([x]), bundled.loss[-1:])
    return scaling_curves(lines, others, star, x_title=t(f"scaling.{axis}"), moments=axis == "parameters")


def legend(found: Scaling) -> str:
    """Name the markers of the first two charts, see `scaling_curves`."""
    sizes = zip(("small", "middle", "large"), found.curves[:-1], strict=True)
    named = {name: short(curve.block_parameters) for name, curve in sizes}
    return t("scaling.legend", **named, bundled=t("scaling.bundled"))


def limitations(found: Scaling) -> str:
    *models, bundled = found.curves
    read = [curve.tokens[-1] for curve in models]
    fewest, most = short(min(read)), short(max(read))
    return t(
        "scaling.honest",
        vocabulary="4,096",
        tokens=most if fewest == most else f"{fewest}–{most}",
        name=t("scaling.bundled"),
        parameters=short(bundled.block_parameters),
        more=f"{bundled.tokens[-1] / max(read):.0f}",
        loss=f"{bundled.loss[-1]:.2f}",
        bits=f"{bundled.bits_per_byte[-1]:.3f}",
        command=found.command,
    )


def named(curve: ScalingCurve) -> str:
    return t("shapes.headline.parameters", n=short(curve.block_parameters))


def short(number: float) -> str:
    """Format a number with two significant digits: 1.2 M, 380 k, 3.4 × 10¹³."""
    if number >= 1e12:
        return power(number)
    for size, unit in ((1e6, "\u00a0M"), (1e3, "\u00a0k")):
        if number >= size:
            return f"{float(f'{number:.2g}') / size:g}{unit}"
    return f"{number:g}"


def scaling_card() -> Callable[[], Card]:
    def of(draw: Callable[[Scaling], T]) -> Callable[[Any], T]:
        return lambda s: draw(load_scaling())

    pictures = {"tokens": by_tokens, "flops": by_flops, "parameters": by_parameters}  # keyed by horizontal axis
    charts = (kit.column(kit.picture(f"scaling-{axis}", of(draw))) for axis, draw in pictures.items())
    return kit.card(
        "scaling",
        kit.question("scaling.question"),
        kit.lead("scaling.lead"),
        kit.says("scaling-legend", of(legend), kind="caption"),
        kit.columns(*charts),
        kit.says("scaling-honest", of(limitations), kind="caption"),
    )
