"""The initialisation panel: an untrained model's prediction, and the norms along its residual stream."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from torch import Tensor

from components.figures.bars import histogram
from components.figures.lines import lines
from components.i18n import t
from components.kit import Panel, column, columns, no_text, picture, question, row, select, setting, slider
from components.labels import percent
from components.next_tokens import at_one
from components.widgets.chart import Drawing
from gpt import GPTConfig
from gpt.experiments import initialisation

CONTEXT, HEAD_SIZE = 32, 16
BINS = 60
NEAR_UNIFORM = 0.2  # a loss this close to ln(vocab_size) counts as uniform, in nats

panel = Panel("start")


@panel.state
class Chosen:
    """The untrained model's configuration. std: standard deviation of its initial weights."""

    layers: int = setting(8, low=1, high=24)
    width: int = setting(128, low=32, high=256, step=32)
    seed: int = setting(0, low=0, high=100)
    vocabulary: int = setting(4096, {n: f"{n:,}" for n in (256, 1024, 4096, 10000)})
    std: float = setting(0.02, {std: f"{std:g}" for std in (0.005, 0.02, 0.1, 0.5)})


def config_of(s: Any) -> GPTConfig:
    width = s[Chosen].width // HEAD_SIZE * HEAD_SIZE
    return GPTConfig(
        vocab_size=s[Chosen].vocabulary,
        block_size=CONTEXT,
        n_layer=s[Chosen].layers,
        n_head=width // HEAD_SIZE,
        n_embd=width,
    )


@panel.computed
def prediction(s: Any) -> tuple[Tensor, float]:
    return initialisation.initial_prediction(config_of(s), seed=s[Chosen].seed, std=s[Chosen].std)


@panel.computed
def untrained_norms(s: Any) -> tuple[list[float], list[float]]:
    return initialisation.residual_norms(config_of(s), seed=s[Chosen].seed)


@panel.computed
def trained_norms(s: Any) -> list[float]:
    """Measure the norms of the visitor's model on its text; [] if there is no text."""
    return [] if no_text(s) else initialisation.model_norms(s.text.loaded.model, s.text.ids[: s.text.n_read])


def answer(s: Any) -> str:
    (_, loss), vocabulary = s[prediction], s[Chosen].vocabulary
    uniform = math.log(vocabulary)
    verdict = t("start.verdict.near" if abs(loss - uniform) < NEAR_UNIFORM else "start.verdict.far")
    numbers = {"loss": f"{loss:.2f}", "vocabulary": f"{vocabulary:,}", "uniform": f"{uniform:.2f}"}
    return t("start.says", verdict=verdict, **numbers)


def logits(s: Any) -> Drawing:
    first, _ = s[prediction]
    values = first.float().numpy()
    limit = max(0.5, float(np.abs(values).max()))
    counts, edges = np.histogram(values, bins=BINS, range=(-limit, limit))
    figure = histogram(counts / len(values), edges, x_title=t("start.logit"), y_title=t("start.share"))
    shares = {"best": percent(at_one(first).max().item()), "even": percent(1 / len(values))}
    return figure, t("start.logits.says", std=f"{first.std():.3f}", **shares)


def norms(s: Any) -> Drawing:
    (scaled, unscaled), trained = s[untrained_norms], s[trained_norms]
    n_layer = len(scaled) - 1
    figure = lines(
        np.arange(n_layer + 1),
        {t("start.scaled"): np.array(scaled), t("start.unscaled"): np.array(unscaled)},
        x_title=t("start.after"),
        y_title=t("start.norm"),
    )
    factor = f"1/√{2 * n_layer} = {1 / math.sqrt(2 * n_layer):.3f}"
    ends = {"scaled": f"{scaled[-1]:.2f}", "unscaled": f"{unscaled[-1]:.2f}"}
    says = t("start.norms.says", begin=f"{scaled[0]:.2f}", factor=factor, **ends)
    note = t("start.trained", begin=f"{trained[0]:.2f}", end=f"{trained[-1]:.2f}") if trained else ""
    return figure, says, note


SECTION = panel.section(
    answer,
    row(
        slider(Chosen.layers, "start.layers"),
        slider(Chosen.width, "start.width"),
        slider(Chosen.seed, "start.seed"),
        select(Chosen.vocabulary, "start.vocabulary"),
        select(Chosen.std, "start.std", info="start.std.info"),
    ),
    columns(
        column(picture("start-logits", logits)),
        column(question("start.norms.question"), picture("start-norms", norms)),
    ),
)
