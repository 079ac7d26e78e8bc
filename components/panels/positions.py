"""The positions panel: sinusoidal and rotary positions, and two small models tested beyond their trained length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from components.figures.lines import Hands, circles, lines
from components.figures.maps import grid
from components.i18n import t
from components.labels import listed, percent
from components.panels.experiment import Experiment, experiment_buttons, time_limited
from components.panels.panel import Panel, Settings, panel_section, problem_sentence, within
from components.parts import caption, column, columns, question, row
from components.render import View
from components.state.snapshot import Snapshot
from components.widgets.chart import chart, chart_data
from gpt.experiments.positions import Extrapolation, rotary_closeness, sinusoidal_positions, train_extrapolation
from gpt.rotary import rotary_angles

HEAD_SIZE = 16  # head size in the charts
PAIRS = (0, 2, 4, 6)
MAX_POSITION = 64
WIDTH = 64  # length of the sinusoidal position vectors
TRAINED_LENGTH, TESTED_LENGTH, STEPS = 32, 96, 240
MAX_SECONDS = 30.0


class Trained(NamedTuple):
    """Two models after the same number of updates."""

    learned: Extrapolation
    rotary: Extrapolation


@dataclass(frozen=True)
class PositionsState:
    """The panel's settings.

    position: the query's position; distance: number of tokens from key to query. run: training run of the two models.
    """

    position: int = 20
    distance: int = 3
    run: Experiment[Trained] = field(default_factory=Experiment)

    @property
    def busy(self) -> bool:
        return self.run.running


@lru_cache(maxsize=1)
def closeness() -> np.ndarray:
    """Return the cosine similarity of two equal vectors after rotation, at each distance, (MAX_POSITION + 1,)."""
    return rotary_closeness(HEAD_SIZE, torch.arange(MAX_POSITION + 1)).numpy()


def answer(s: Snapshot) -> dict[str, Any]:
    distance = s.state(PositionsState).distance
    near = percent(closeness()[distance])
    return {"text": t("positions.says", distance=distance, closeness=near)}


def waves(s: Snapshot) -> dict[str, Any]:
    """Draw the sinusoidal position vectors, one row per position."""
    figure = grid(
        sinusoidal_positions(MAX_POSITION + 1, WIDTH).numpy(),
        x_title=t("positions.number"),
        y_title=t("positions.place"),
        height=300,
    )
    return chart_data(figure, t("positions.waves.says", width=WIDTH))


def closeness_lines(s: Snapshot) -> dict[str, Any]:
    """Draw the cosine similarity against the distance."""
    distance, title = s.state(PositionsState).distance, t("positions.closeness")
    figure = lines(
        np.arange(MAX_POSITION + 1),
        {title: closeness()},
        x_title=t("positions.apart"),
        y_title=title,
        mark=(f"{distance}", distance),
        height=260,
    )
    return chart_data(figure, t("positions.closeness.says"))


def rotations(s: Snapshot) -> dict[str, Any]:
    """Draw how some of a head's dimension pairs are rotated at a query's and a key's position."""
    state = s.state(PositionsState)
    key = state.position - state.distance
    cos, sin = rotary_angles(torch.tensor([state.position, key, 1]), HEAD_SIZE)
    pairs = torch.atan2(sin, cos)[:, list(PAIRS)].numpy()  # (3, pairs)
    hands = [Hands(t("positions.pair", n=pair), float(pairs[0, i]), float(pairs[1, i])) for i, pair in enumerate(PAIRS)]
    degrees = np.degrees(pairs[2])
    caption = t(
        "positions.circles",
        size=HEAD_SIZE,
        position=state.position,
        key_position=key,
        last=PAIRS[-1],
        slower=f"{degrees[0] / degrees[-1]:,.0f}",
        angles=listed(f"{angle:.3g}°" for angle in degrees),
    )
    return chart_data(circles(hands, t("positions.query"), t("positions.key")), caption)


def train(s: Snapshot) -> Iterator[Trained]:
    """Train both models step by step for at most MAX_SECONDS, testing each on longer texts."""
    lengths: Any = {"trained_length": TRAINED_LENGTH, "tested_length": TESTED_LENGTH, "steps": STEPS}
    runs = train_extrapolation("learned", **lengths), train_extrapolation("rotary", **lengths)
    return time_limited(map(Trained, *runs), MAX_SECONDS)


def beyond(s: Snapshot) -> dict[str, Any]:
    """Draw the loss at each position, within the trained length and beyond."""
    trained = s.state(PositionsState).run.latest
    if trained is None:
        return chart_data(None, "")
    learned, rotary = trained
    figure = lines(
        np.arange(1, len(learned.by_position) + 1),
        {t(f"positions.{each.position}"): np.array(each.by_position) for each in trained},
        x_title=t("positions.place"),
        y_title=t("positions.loss"),
        level_at=(t("positions.floor"), learned.floor),
        mark=(t("positions.trained"), learned.trained_length),
    )
    caption = t(
        "positions.beyond.picture",
        steps=learned.steps,
        trained=learned.trained_length,
        learned_in=f"{learned.inside:.2f}",
        rotary_in=f"{rotary.inside:.2f}",
        learned_out=f"{learned.beyond:.2f}",
        rotary_out=f"{rotary.beyond:.2f}",
    )
    return chart_data(figure, caption)


VIEWS = (
    View("positions-answer", answer),
    View("positions-notice", lambda s: problem_sentence(s, s.state(PositionsState).run.problem)),
    View("positions-waves", waves),
    View("positions-circles", rotations),
    View("positions-closeness", closeness_lines),
    View("positions-beyond", beyond),
)
CHECKS = {"position": within(0, MAX_POSITION), "distance": within(0, MAX_POSITION)}
SETTINGS = Settings(PositionsState, CHECKS)


def build_positions() -> Panel:
    """Build the panel with charts of both position encodings, and two models that are trained on request."""
    position, distance = (
        SETTINGS.slider(f"positions.{name}", 0, MAX_POSITION, 1, info=info)
        for name, info in (("position", ""), ("distance", "positions.distance.info"))
    )
    limits = {"trained": TRAINED_LENGTH, "tested": TESTED_LENGTH, "seconds": f"{MAX_SECONDS:g}"}
    part = panel_section(
        "positions",
        chart("positions-waves"),
        row(position, distance, classes="gb-panel-controls"),
        columns(
            column(chart("positions-circles")),
            column(chart("positions-closeness")),
        ),
        question("positions.beyond.question"),
        caption("positions.beyond.says", **limits),
        experiment_buttons("positions", "positions.train", PositionsState, train),
        chart("positions-beyond"),
    )
    return Panel(part, VIEWS)
