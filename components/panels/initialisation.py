"""The initialisation panel: an untrained model's prediction, and the norms along its residual stream."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from components.figures.bars import histogram
from components.figures.lines import lines
from components.i18n import t
from components.labels import percent
from components.next_tokens import at_one
from components.panels.panel import (
    Panel,
    Result,
    Settings,
    computed,
    one_of,
    panel_section,
    problem_sentence,
    text_of,
    value_of,
    waiting_sentence,
    within,
)
from components.parts import column, columns, question, row
from components.render import View
from components.state.snapshot import Snapshot
from components.state.text import Text
from components.widgets.chart import chart, chart_data
from gpt import GPTConfig
from gpt.experiments.initialisation import (
    InitialPrediction,
    ResidualNorms,
    initial_prediction,
    model_norms,
    residual_norms,
)

CONTEXT, HEAD_SIZE = 32, 16
BINS = 60
NEAR_UNIFORM = 0.2  # a loss this close to ln(vocab_size) counts as uniform, in nats
RANGES = {"layers": (1, 24, 1), "width": (32, 256, 32), "seed": (0, 100, 1)}
VOCABULARIES = (256, 1024, 4096, 10000)
STDS = (0.005, 0.02, 0.1, 0.5)


class InitialisationInputs(NamedTuple):
    """The untrained model's configuration, and the visitor's text for comparison, if there is one."""

    config: GPTConfig
    std: float
    seed: int
    running: Text | None


class Untrained(NamedTuple):
    """Measurements of untrained models.

    trained: norms of the visitor's model on its text; () if there is no text.
    """

    config: GPTConfig
    prediction: InitialPrediction
    norms: ResidualNorms
    trained: tuple[float, ...]


@dataclass(frozen=True)
class InitialisationState:
    """The untrained model's configuration. std: standard deviation of its initial weights."""

    layers: int = 8
    width: int = 128
    seed: int = 0
    vocabulary: int = 4096
    std: float = 0.02
    result: Result[Untrained] | None = None


def request_of(s: Snapshot) -> InitialisationInputs:
    state = s.state(InitialisationState)
    width = max(HEAD_SIZE, state.width // HEAD_SIZE * HEAD_SIZE)
    config = GPTConfig(
        vocab_size=state.vocabulary,
        block_size=CONTEXT,
        n_layer=state.layers,
        n_head=width // HEAD_SIZE,
        n_embd=width,
    )
    return InitialisationInputs(config, state.std, state.seed, text_of(s))


def compute(request: InitialisationInputs) -> Untrained:
    """Measure two untrained models, and the visitor's model on its text."""
    text = request.running
    return Untrained(
        request.config,
        initial_prediction(request.config, seed=request.seed, std=request.std),
        residual_norms(request.config, seed=request.seed),
        () if text is None else model_norms(text.loaded.model, text.ids[: text.n_read]),
    )


def result_of(s: Snapshot) -> Untrained | None:
    return value_of(s, s.state(InitialisationState).result)


def answer(s: Snapshot) -> dict[str, Any]:
    untrained = result_of(s)
    if untrained is None:
        return {"text": waiting_sentence(s)}
    first = untrained.prediction
    verdict = "start.verdict.near" if abs(first.loss - first.uniform_loss) < NEAR_UNIFORM else "start.verdict.far"
    caption = t(
        "start.says",
        loss=f"{first.loss:.2f}",
        vocabulary=f"{untrained.config.vocab_size:,}",
        uniform=f"{first.uniform_loss:.2f}",
        verdict=t(verdict),
    )
    return {"text": caption}


def logits(s: Snapshot) -> dict[str, Any]:
    """Draw a histogram of the logits at one position."""
    untrained = result_of(s)
    if untrained is None:
        return chart_data(None, "")
    first = untrained.prediction
    values = first.logits.float().numpy()
    limit = max(0.5, float(np.abs(values).max()))
    counts, edges = np.histogram(values, bins=BINS, range=(-limit, limit))
    figure = histogram(counts / len(values), edges, x_title=t("start.logit"), y_title=t("start.share"))
    caption = t(
        "start.logits.says",
        std=f"{first.logits_std:.3f}",
        best=percent(at_one(first.logits).max().item()),
        even=percent(1 / len(values)),
    )
    return chart_data(figure, caption)


def norms(s: Snapshot) -> dict[str, Any]:
    """Draw the norms after each layer of an untrained model, with and without scaled initialisation."""
    untrained = result_of(s)
    if untrained is None:
        return chart_data(None, "")
    n_layer, lengths, trained = untrained.config.n_layer, untrained.norms, untrained.trained
    named = {"scaled": lengths.scaled, "unscaled": lengths.unscaled}
    figure = lines(
        np.arange(n_layer + 1),
        {t(f"start.{name}"): np.array(side) for name, side in named.items()},
        x_title=t("start.after"),
        y_title=t("start.norm"),
    )
    caption = t(
        "start.norms.says",
        begin=f"{lengths.scaled[0]:.2f}",
        scaled=f"{lengths.scaled[-1]:.2f}",
        unscaled=f"{lengths.unscaled[-1]:.2f}",
        factor=f"1/√{2 * n_layer} = {1 / math.sqrt(2 * n_layer):.3f}",
    )
    note = ""
    if trained:
        note = t("start.trained", begin=f"{trained[0]:.2f}", end=f"{trained[-1]:.2f}")
    return chart_data(figure, caption, note)


VIEWS = (
    View("start-answer", answer),
    View("start-notice", lambda s: problem_sentence(s, s.state(InitialisationState).result)),
    View("start-logits", logits),
    View("start-norms", norms),
)
ANALYSIS = computed(InitialisationState, request_of, compute)
CHECKS = {
    **{name: within(low, high) for name, (low, high, _) in RANGES.items()},
    "vocabulary": one_of(*VOCABULARIES),
    "std": one_of(*STDS),
}
SETTINGS = Settings(InitialisationState, CHECKS)


def build_initialisation() -> Panel:
    """Build the panel with small, freshly initialised models of the chosen configuration."""
    ranges = (SETTINGS.slider(f"start.{name}", low, high, step) for name, (low, high, step) in RANGES.items())
    vocabularies, stds = [(f"{n:,}", n) for n in VOCABULARIES], [(f"{std:g}", std) for std in STDS]
    part = panel_section(
        "start",
        row(
            *ranges,
            SETTINGS.select("start.vocabulary", vocabularies),
            SETTINGS.select("start.std", stds, info="start.std.info"),
            classes="gb-panel-controls",
        ),
        columns(
            column(chart("start-logits")),
            column(question("start.norms.question"), chart("start-norms")),
        ),
    )
    return Panel(part, VIEWS, ANALYSIS)
