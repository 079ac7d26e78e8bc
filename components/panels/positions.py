"""The positions panel: sinusoidal and rotary positions, and two small models tested beyond their trained length."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from components import kit
from components.figures.lines import circles, lines
from components.figures.maps import grid
from components.i18n import t
from components.labels import listed, percent
from components.state.jobs import Job, time_limited
from components.widgets.chart import Drawing
from gpt.config import Position
from gpt.experiments import positions
from gpt.rotary import rotary_angles

HEAD_SIZE = 16  # head size in the charts
PAIRS = (0, 2, 4, 6)
MAX_POSITION = 64
WIDTH = 64  # length of the sinusoidal position vectors
TRAINED_LENGTH, TESTED_LENGTH, STEPS = 32, 96, 240
MAX_SECONDS = 30.0

panel = kit.Panel("positions")


@panel.state
class Chosen:
    """position: the query's position. distance: number of tokens from key to query. latest: the number of
    updates, and the losses of models with learned and rotary positions by place in the text."""

    position: int = kit.setting(20, low=0, high=MAX_POSITION)
    distance: int = kit.setting(3, low=0, high=MAX_POSITION)
    latest: tuple[int, dict[Position, list[float]]] | None = None
    job: Job | None = None
    notice: ValueError | None = None


@lru_cache(maxsize=1)
def closeness() -> np.ndarray:
    """Return the cosine similarity of two equal vectors after rotation, at each distance, (MAX_POSITION + 1,)."""
    return positions.rotary_closeness(HEAD_SIZE, torch.arange(MAX_POSITION + 1)).numpy()


def answer(s: Any) -> str:
    distance = s[Chosen].distance
    return t("positions.says", distance=distance, closeness=percent(closeness()[distance]))


def waves(s: Any) -> Drawing:
    figure = grid(
        positions.sinusoidal_positions(MAX_POSITION + 1, WIDTH).numpy(),
        x_title=t("positions.number"),
        y_title=t("positions.place"),
    )
    return figure, t("positions.waves.says", width=WIDTH)


def closeness_lines(s: Any) -> Drawing:
    distance, title = s[Chosen].distance, t("positions.closeness")
    figure = lines(
        np.arange(MAX_POSITION + 1),
        {title: closeness()},
        x_title=t("positions.apart"),
        y_title=title,
        mark=(f"{distance}", distance),
    )
    return figure, t("positions.closeness.says")


def rotations(s: Any) -> Drawing:
    """Draw how some of a head's dimension pairs are rotated at a query's and a key's position."""
    position = s[Chosen].position
    key = position - s[Chosen].distance
    cos, sin = rotary_angles(torch.tensor([position, key, 1]), HEAD_SIZE)
    pairs = torch.atan2(sin, cos)[:, list(PAIRS)].numpy()  # (3, pairs)
    hands = [(t("positions.pair", n=pair), float(pairs[0, i]), float(pairs[1, i])) for i, pair in enumerate(PAIRS)]
    degrees = np.degrees(pairs[2])
    speeds = {"angles": listed(f"{each:.3g}°" for each in degrees), "slower": f"{degrees[0] / degrees[-1]:,.0f}"}
    places = {"position": position, "key_position": key}
    return circles(hands), t("positions.circles", size=HEAD_SIZE, last=PAIRS[-1], **places, **speeds)


def train(s: Any) -> Iterator[tuple[int, dict[Position, list[float]]]]:
    run = positions.train_extrapolation(trained_length=TRAINED_LENGTH, tested_length=TESTED_LENGTH, steps=STEPS)
    return time_limited(run, MAX_SECONDS)


def beyond(s: Any) -> Drawing:
    trained = s[Chosen].latest
    if trained is None:
        return None
    steps, by_place = trained
    figure = lines(
        np.arange(1, TESTED_LENGTH + 1),
        {t(f"positions.{position}"): np.array(values) for position, values in by_place.items()},
        x_title=t("positions.place"),
        y_title=t("positions.loss"),
        level_at=(t("positions.floor"), positions.FLOOR),
        mark=(t("positions.trained"), TRAINED_LENGTH),
    )
    losses = {
        f"{position}_{where}": f"{loss:.2f}"
        for position, values in by_place.items()
        for where, loss in zip(("in", "out"), positions.inside_and_beyond(values, TRAINED_LENGTH), strict=True)
    }
    says = t("positions.beyond.picture", steps=steps, trained=TRAINED_LENGTH, **losses)
    return figure, says


LIMITS = {"trained": TRAINED_LENGTH, "tested": TESTED_LENGTH, "seconds": f"{MAX_SECONDS:g}"}
SECTION = panel.section(
    answer,
    kit.picture("positions-waves", waves),
    kit.row(
        kit.slider(Chosen.position, "positions.position"),
        kit.slider(Chosen.distance, "positions.distance", info="positions.distance.info"),
    ),
    kit.columns(
        kit.column(kit.picture("positions-circles", rotations)),
        kit.column(kit.picture("positions-closeness", closeness_lines)),
    ),
    kit.question("positions.beyond.question"),
    kit.caption("positions.beyond.says", **LIMITS),
    kit.experiment_buttons("positions", "positions.train", Chosen, train),
    kit.picture("positions-beyond", beyond),
    notice=lambda s: s[Chosen].notice,
)
