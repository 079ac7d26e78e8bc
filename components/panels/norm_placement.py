"""The norm placement panel: pre-norm and post-norm blocks before training, by depth."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from components.figures.lines import lines
from components.i18n import t
from components.kit import Panel, caption, column, columns, picture, row, setting, slider
from components.labels import power
from components.widgets.chart import Drawing
from gpt.experiments.layers import PLACEMENTS, depth_profile

CHARTS = ("straight_gradients", "weight_gradients", "lengths")  # keys of `depth_profile`

panel = Panel("placement")


@panel.state
class Chosen:
    layers: int = setting(24, low=2, high=48)
    seed: int = setting(0, low=0, high=100)


@panel.computed
def profiles(s: Any) -> tuple[dict[str, list[float]], ...]:
    return tuple(depth_profile(each, n_layer=s[Chosen].layers, seed=s[Chosen].seed) for each in PLACEMENTS)


def answer(s: Any) -> str:
    pre, post = s[profiles]
    values = {"n": len(pre["weight_gradients"]), "straight": power(post["straight_gradients"][0])}
    values |= {"pre": f"{pre['weight_gradients'][-1]:.2g}", "post": f"{post['weight_gradients'][-1]:.2g}"}
    return t("placement.says", **values)


def by_depth(field: str, s: Any) -> Drawing:
    series = {
        t(f"placement.{name}"): np.array(profile[field]) for name, profile in zip(PLACEMENTS, s[profiles], strict=True)
    }
    figure = lines(
        np.arange(len(next(iter(series.values())))),
        series,
        x_title=t("placement.block" if field == "weight_gradients" else "placement.after"),
        y_title=t(f"placement.{field}"),
        log_y=field == "straight_gradients",
    )
    return figure, t(f"placement.{field}.says")


SECTION = panel.section(
    answer,
    caption("placement.models"),
    row(slider(Chosen.layers, "placement.layers"), slider(Chosen.seed, "placement.seed")),
    columns(*(column(picture(f"placement-{field.replace('_', '-')}", partial(by_depth, field))) for field in CHARTS)),
)
