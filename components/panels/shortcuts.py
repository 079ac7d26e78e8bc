"""The shortcut panel: each layer's gradient with and without shortcut connections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from components.errors import PageError
from components.figures.bars import grouped_bars
from components.i18n import t
from components.labels import ACTIVATIONS
from components.panels.panel import (
    Panel,
    Settings,
    of_state,
    one_of,
    panel_section,
    problem_sentence,
    within,
)
from components.parts import column, columns, number_box, row
from components.render import View
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.widgets.chart import chart, chart_data
from components.widgets.table import table
from gpt.config import Activation
from gpt.experiments.shortcuts import ShortcutGradients, shortcut_gradients

MAX_SEED = 2**31 - 1


@dataclass(frozen=True)
class ShortcutsState:
    """The two networks' configuration. problem: the error for an invalid seed."""

    depth: int = 5
    width: int = 3
    activation: Activation = "gelu_tanh"
    seed: int = 123
    problem: ValueError | None = None


CHECKS = {"depth": within(1, 16), "width": within(1, 64), "activation": one_of(*ACTIVATIONS)}
SETTINGS = Settings(ShortcutsState, CHECKS)


def type_seed(session: Session, seed: object) -> None:
    """Set the seed; an invalid seed is reported and leaves the numbers unchanged."""
    if type(seed) is int and 0 <= seed <= MAX_SEED:
        session.change(ShortcutsState, seed=seed, problem=None)
    else:
        session.change(ShortcutsState, problem=PageError("shortcuts.seed.error", limit=f"{MAX_SEED:,}"))


def gradients(s: Snapshot) -> ShortcutGradients:
    """Return the gradients from one backward pass through both networks."""
    state = s.state(ShortcutsState)
    return shortcut_gradients(depth=state.depth, width=state.width, seed=state.seed, activation=state.activation)


def answer(s: Snapshot) -> dict[str, Any]:
    return {"text": first_layer_sentence(s.cached(gradients))}


def first_layer_sentence(found: ShortcutGradients) -> str:
    """Return a sentence that compares the first layer's gradient with and without shortcuts."""
    without, with_shortcuts = found.without[0], found.with_shortcuts[0]
    if with_shortcuts == without == 0:
        return t("shortcuts.dead")
    if without == 0:
        return t("shortcuts.nothing", with_shortcuts=f"{with_shortcuts:.3g}")
    ratio = with_shortcuts / without
    shown = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
    return t("shortcuts.says", without=f"{without:.3g}", with_shortcuts=f"{with_shortcuts:.3g}", ratio=shown)


def pair(s: Snapshot) -> dict[str, tuple[float, ...]]:
    """Return the gradients of both networks, keyed by title."""
    found = s.cached(gradients)
    sides = {"without": found.without, "with": found.with_shortcuts}
    return {t(f"shortcuts.{kind}"): side for kind, side in sides.items()}


def picture(s: Snapshot) -> dict[str, Any]:
    """Draw each layer's two gradients as bars."""
    sides = s.cached(pair)
    figure = grouped_bars(
        [str(layer) for layer in range(len(next(iter(sides.values()))))],
        {title: np.array(values) for title, values in sides.items()},
        log=True,
        digits=".2g",
        tip=".6g",
        height=340,
        y_title=t("shortcuts.gradient"),
        x_title=t("shortcuts.layer"),
    )
    return chart_data(figure, t("shortcuts.picture"))


def numbers(s: Snapshot) -> dict[str, Any]:
    """Return the gradients as a table."""
    sides = s.cached(pair)
    rows = [
        [str(layer), *(f"{value:.6g}" for value in both)]
        for layer, both in enumerate(zip(*sides.values(), strict=True))
    ]
    return {"rows": [[t("shortcuts.layer"), *sides], *rows]}


VIEWS = (
    View("shortcuts-answer", answer),
    View("shortcuts-notice", lambda s: problem_sentence(s, s.state(ShortcutsState).problem)),
    View("shortcuts-gradients", picture),
    View("shortcuts-numbers", numbers),
)


def build_shortcuts() -> Panel:
    """Build the panel with the gradients in a deep network with and without shortcuts."""
    ranges = (
        SETTINGS.slider(f"shortcuts.{name}", 1, high, 1, info=f"shortcuts.{name}.info")
        for name, high in (("depth", 16), ("width", 64))
    )
    activations = [(title, name) for name, title in ACTIVATIONS.items()]
    part = panel_section(
        "shortcuts",
        row(
            *ranges,
            SETTINGS.select("shortcuts.activation", activations),
            number_box("shortcuts-seed", label="shortcuts.seed", value=of_state(ShortcutsState, "seed"), on=type_seed),
            classes="gb-panel-controls",
        ),
        columns(
            column(chart("shortcuts-gradients"), grow=2),
            column(table("shortcuts-numbers")),
        ),
    )
    return Panel(part, VIEWS)
