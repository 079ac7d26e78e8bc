"""The shortcut panel: each layer's gradient with and without shortcut connections."""

from __future__ import annotations

from typing import Any

import numpy as np

from components.errors import PageError
from components.figures.bars import grouped_bars
from components.i18n import t
from components.kit import Panel, column, columns, picture, row, select, setting, slider
from components.labels import ACTIVATIONS
from components.parts import number_box
from components.state.session import Session
from components.widgets.chart import Drawing
from components.widgets.simple import table
from gpt.experiments.initialisation import shortcut_gradients

MAX_SEED = 2**31 - 1

panel = Panel("shortcuts")


@panel.state
class Chosen:
    """The two networks' configuration. problem: the error for an invalid seed."""

    depth: int = setting(5, low=1, high=16)
    width: int = setting(3, low=1, high=64)
    activation: str = setting("gelu_tanh", ACTIVATIONS)
    seed: int = 123
    problem: ValueError | None = None


def type_seed(session: Session, seed: object) -> None:
    if type(seed) is int and 0 <= seed <= MAX_SEED:
        session.change(Chosen, seed=seed, problem=None)
    else:
        session.change(Chosen, problem=PageError("shortcuts.seed.error", limit=f"{MAX_SEED:,}"))


@panel.computed
def gradients(s: Any) -> tuple[list[float], list[float]]:
    chosen = s[Chosen]
    return shortcut_gradients(depth=chosen.depth, width=chosen.width, seed=chosen.seed, activation=chosen.activation)


def answer(s: Any) -> str:
    without, with_shortcuts = (layers[0] for layers in s[gradients])
    if with_shortcuts == without == 0:
        return t("shortcuts.dead")
    if without == 0:
        return t("shortcuts.nothing", with_shortcuts=f"{with_shortcuts:.3g}")
    ratio = with_shortcuts / without
    shown = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
    return t("shortcuts.says", without=f"{without:.3g}", with_shortcuts=f"{with_shortcuts:.3g}", ratio=shown)


def bars(s: Any) -> Drawing:
    without, with_shortcuts = s[gradients]
    figure = grouped_bars(
        [str(layer) for layer in range(len(without))],
        {t("shortcuts.without"): np.array(without), t("shortcuts.with"): np.array(with_shortcuts)},
        log=True,
        digits=".2g",
        y_title=t("shortcuts.gradient"),
        x_title=t("shortcuts.layer"),
    )
    return figure, t("shortcuts.picture")


def numbers(s: Any) -> dict[str, Any]:
    heads = [t(f"shortcuts.{key}") for key in ("layer", "without", "with")]
    pairs = enumerate(zip(*s[gradients], strict=True))
    return {"rows": [heads, *([str(layer), f"{one:.6g}", f"{other:.6g}"] for layer, (one, other) in pairs)]}


SECTION = panel.section(
    answer,
    row(
        slider(Chosen.depth, "shortcuts.depth", info="shortcuts.depth.info"),
        slider(Chosen.width, "shortcuts.width", info="shortcuts.width.info"),
        select(Chosen.activation, "shortcuts.activation"),
        number_box("shortcuts-seed", label="shortcuts.seed", value=lambda s: s[Chosen].seed, on=type_seed),
    ),
    columns(column(picture("shortcuts-gradients", bars), grow=2), column(table("shortcuts-numbers", draw=numbers))),
    notice=lambda s: s[Chosen].problem,
)
