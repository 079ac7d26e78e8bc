"""The layer times panel: how long each part of the model takes on the visitor's text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from components.errors import PageError
from components.figures.bars import stacked_bars
from components.i18n import t
from components.labels import percent
from components.panels.experiment import Experiment, experiment_buttons, time_limited
from components.panels.panel import Panel, no_text, panel_section, problem_sentence
from components.parts import caption
from components.render import View
from components.state.snapshot import Snapshot
from components.widgets.chart import chart, chart_data
from gpt import LoadedModel
from gpt.experiments.speed import LayerTimes, measure_layers

N_PASSES = 25
MAX_SECONDS = 10.0


class Measured(NamedTuple):
    """Timed passes of a model over a text with n_tokens tokens."""

    loaded: LoadedModel
    n_tokens: int
    passes: tuple[LayerTimes, ...]

    def milliseconds(self, part: str) -> np.ndarray:
        """Return a `LayerTimes` field for each pass: (n,), or (n, n_layer)."""
        return 1000 * np.array([getattr(each, part) for each in self.passes])


@dataclass(frozen=True)
class LayerTimesState:
    """The panel's state. run: the passes measured so far."""

    run: Experiment[Measured] = field(default_factory=Experiment)


def measure(s: Snapshot) -> Iterator[Measured]:
    """Time forward passes, one at a time, for at most MAX_SECONDS."""
    if s.text is None or no_text(s):
        raise PageError("error.no_text")
    ids, loaded = s.text.ids[: s.text.n_read], s.text.loaded
    passes: tuple[LayerTimes, ...] = ()
    for times in time_limited(measure_layers(loaded.model, ids, N_PASSES), MAX_SECONDS):
        passes = (*passes, times)
        yield Measured(loaded, len(ids), passes)


def measured_of(s: Snapshot) -> Measured | None:
    """Return the passes measured so far if they are of the model in use."""
    found = s.state(LayerTimesState).run.latest
    return found if found is not None and found.loaded is s.loaded else None


def answer(s: Snapshot) -> dict[str, Any]:
    """Return the time for a whole pass, and the share that each kind of part takes."""
    measured = s.cached(measured_of)
    if measured is None:
        return {"text": "" if no_text(s) else t("layers.says", s.language, passes=N_PASSES, seconds=f"{MAX_SECONDS:g}")}
    total = measured.milliseconds("total")
    shares = {
        part: percent(float(np.median(measured.milliseconds(part).reshape(len(total), -1).sum(axis=1) / total)))
        for part in ("embedding", "attention", "feed_forward", "head")
    }
    middle, low, high = (f"{value:.3g}" for value in (np.median(total), total.min(), total.max()))
    counts = {"tokens": f"{measured.n_tokens:,}", "passes": len(total)}
    return {
        "text": t("layers.measured", s.language, median=middle, fastest=low, slowest=high, **counts)
        + t("layers.shares", s.language, **shares)
    }


def picture(s: Snapshot) -> dict[str, Any]:
    """Draw each part's median time, with quartiles for the embedding, each block and the head."""
    measured = s.cached(measured_of)
    if measured is None:
        return chart_data(None, "")
    embedding, attention, feed_forward, head = (
        measured.milliseconds(part) for part in ("embedding", "attention", "feed_forward", "head")
    )
    columns = np.column_stack([embedding, attention + feed_forward, head])  # (n, n_layer + 2)
    low, high = np.percentile(columns, [25, 75], axis=0)
    n_layer = attention.shape[1]
    ends = np.zeros(n_layer + 2)
    ends[[0, -1]] = np.median(embedding), np.median(head)
    figure = stacked_bars(
        [t("layers.embedding", s.language), *map(str, range(n_layer)), t("layers.head", s.language)],
        {
            t("layers.attention", s.language): np.pad(np.median(attention, axis=0), 1),
            t("layers.feed_forward", s.language): np.pad(np.median(feed_forward, axis=0), 1),
            t("layers.ends", s.language): ends,
        },
        spread=(low, high),
        x_title=t("layers.layer", s.language),
        y_title=t("layers.milliseconds", s.language),
        tip=".3g",
    )
    return chart_data(figure, t("layers.picture.says", s.language))


VIEWS = (
    View("layers-answer", answer),
    View("layers-notice", lambda s: problem_sentence(s, no_text(s), s.state(LayerTimesState).run.problem)),
    View("layers-measured", picture),
)


def build_layer_times() -> Panel:
    """Build the panel that measures times on request."""
    part = panel_section(
        "layers",
        experiment_buttons("layers", "kernels.measure", LayerTimesState, measure, small=False),
        chart("layers-measured"),
        caption("layers.note"),
    )
    return Panel(part, VIEWS)
