"""The norm placement panel: pre-norm and post-norm blocks before training, by depth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from components.figures.lines import lines
from components.i18n import t
from components.labels import power
from components.panels.panel import (
    Panel,
    Result,
    Settings,
    computed,
    panel_section,
    problem_sentence,
    value_of,
    waiting_sentence,
    within,
)
from components.parts import caption, column, columns, row
from components.render import View
from components.state.snapshot import Snapshot
from components.widgets.chart import chart, chart_data
from gpt.experiments.normalisation import PLACEMENTS, DepthProfile, depth_profile

RANGES = {"layers": (2, 48, 1), "seed": (0, 100, 1)}
CHARTS = ("straight_gradients", "weight_gradients", "lengths")  # fields of DepthProfile


class NormPlacementInputs(NamedTuple):
    """The depth and seed of the two models."""

    layers: int
    seed: int


@dataclass(frozen=True)
class NormPlacementState:
    """The settings for both models: number of blocks and seed. result: a profile for each of PLACEMENTS."""

    layers: int = 24
    seed: int = 0
    result: Result[tuple[DepthProfile, ...]] | None = None


def request_of(s: Snapshot) -> NormPlacementInputs:
    state = s.state(NormPlacementState)
    return NormPlacementInputs(state.layers, state.seed)


def compute(request: NormPlacementInputs) -> tuple[DepthProfile, ...]:
    return tuple(depth_profile(each, n_layer=request.layers, seed=request.seed) for each in PLACEMENTS)


def profiles(s: Snapshot) -> tuple[DepthProfile, ...] | None:
    return value_of(s, s.state(NormPlacementState).result)


def answer(s: Snapshot) -> dict[str, Any]:
    found = profiles(s)
    if found is None:
        return {"text": waiting_sentence(s)}
    pre, post = found
    values = {"n": len(pre.weight_gradients), "straight": power(post.straight_gradients[0])}
    values |= {"pre": f"{pre.weight_gradients[-1]:.2g}", "post": f"{post.weight_gradients[-1]:.2g}"}
    return {"text": t("placement.says", **values)}


def picture(field: str, s: Snapshot) -> dict[str, Any]:
    """Draw a field of both models' profiles against depth."""
    found = profiles(s)
    if found is None:
        return chart_data(None, "")
    series = {
        t(f"placement.{name}"): np.array(getattr(profile, field))
        for name, profile in zip(PLACEMENTS, found, strict=True)
    }
    figure = lines(
        np.arange(len(next(iter(series.values())))),
        series,
        x_title=t("placement.block" if field == "weight_gradients" else "placement.after"),
        y_title=t(f"placement.{field}"),
        log_y=field == "straight_gradients",
        height=260,
    )
    return chart_data(figure, t(f"placement.{field}.says"))


VIEWS = (
    View("placement-answer", answer),
    View("placement-notice", lambda s: problem_sentence(s, s.state(NormPlacementState).result)),
    *(View(f"placement-{field.replace('_', '-')}", partial(picture, field)) for field in CHARTS),
)
ANALYSIS = computed(NormPlacementState, request_of, compute)
CHECKS = {name: within(low, high) for name, (low, high, _) in RANGES.items()}
SETTINGS = Settings(NormPlacementState, CHECKS)


def build_norm_placement() -> Panel:
    """Build the panel that initialises two small models and computes their gradients."""
    ranges = (SETTINGS.slider(f"placement.{name}", low, high, step) for name, (low, high, step) in RANGES.items())
    names = [f"placement-{each.replace('_', '-')}" for each in CHARTS]
    part = panel_section(
        "placement",
        caption("placement.models"),
        row(*ranges, classes="gb-panel-controls"),
        columns(*(column(chart(name)) for name in names)),
    )
    return Panel(part, VIEWS, ANALYSIS)
