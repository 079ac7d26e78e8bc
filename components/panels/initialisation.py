"""The panel on initialisation: what a fresh model says, and how long the vectors of its residual stream become."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import gradio as gr
import numpy as np

from components.frame import Frame
from components.i18n import Language, t
from components.labels import percent
from components.legacy import Playground
from components.localized import Words
from components.panels import curve_figures
from components.panels.panel import Panel, Values, document_of, make_panel
from components.panels.panel_figures import lines
from components.widgets.chart import chart, chart_value
from components.widgets.sentence import sentence
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
NEAR = 0.2  # nats from ln(vocabulary) that still count as knowing nothing


@dataclass(frozen=True)
class InitialisationPanel:
    """The components of the panel."""

    frame: Frame
    playground: Playground
    layers: gr.Slider
    width: gr.Slider
    vocabulary: gr.Dropdown
    std: gr.Dropdown
    seed: gr.Slider
    answer: gr.HTML
    notice: gr.HTML
    logits: gr.HTML
    norms: gr.HTML


def build_initialisation(words: Words, frame: Frame, playground: Playground) -> Panel:
    """Lay the panel out; it makes small fresh models of a shape of one's own."""
    parts: dict[str, Any] = {"frame": frame, "playground": playground}
    with gr.Column(elem_classes="gb-card gb-panel"):
        words.build(sentence, {"value": "start.question"}, kind="question")
        parts["answer"] = sentence(kind="lead", elem_id="start-answer")
        parts["notice"] = sentence(kind="notice", elem_id="start-notice")
        with gr.Row(elem_classes="gb-panel-controls"):
            ranges = {"layers": (1, 24, 1, 8), "width": (32, 256, 32, 128), "seed": (0, 100, 1, 0)}
            for name, (low, high, step, value) in ranges.items():
                parts[name] = words.build(
                    gr.Slider,
                    {"label": f"start.{name}"},
                    minimum=low,
                    maximum=high,
                    step=step,
                    value=value,
                    elem_id=f"start-{name}",
                )
            parts["vocabulary"] = words.build(
                gr.Dropdown,
                {"label": "start.vocabulary"},
                choices=[(f"{n:,}", n) for n in (256, 1024, 4096, 10000)],
                value=4096,
                elem_id="start-vocabulary",
            )
            parts["std"] = words.build(
                gr.Dropdown,
                {"label": "start.std", "info": "start.std.info"},
                choices=[(f"{std:g}", std) for std in (0.005, 0.02, 0.1, 0.5)],
                value=0.02,
                elem_id="start-std",
            )
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=280):
                parts["logits"] = chart(elem_id="start-logits")
            with gr.Column(min_width=280):
                words.build(sentence, {"value": "start.norms.question"}, kind="question")
                parts["norms"] = chart(elem_id="start-norms")
    ui = InitialisationPanel(**{field.name: parts[field.name] for field in fields(InitialisationPanel)})
    return make_panel(
        frame,
        playground,
        partial(draw, ui),
        controls=[ui.layers, ui.width, ui.seed, ui.vocabulary, ui.std],
        outputs=[ui.answer, ui.logits, ui.norms],
        notice=ui.notice,
    )


def draw(ui: InitialisationPanel, values: Values, entering: bool) -> Values:
    """One fresh model of the shape, looked at twice."""
    language: Language = values[ui.frame.language]
    width, seed = int(values[ui.width]), int(values[ui.seed])
    config = GPTConfig(
        vocab_size=int(values[ui.vocabulary]),
        block_size=CONTEXT,
        n_layer=int(values[ui.layers]),
        n_head=width // HEAD_SIZE,
        n_embd=width,
    )
    first = initial_prediction(config, seed=seed, std=float(values[ui.std]))
    document = document_of(values, ui.playground)
    trained = () if document is None else model_norms(document.loaded.model, document.ids[: document.n_read])
    verdict = "start.verdict.near" if abs(first.loss - first.uniform_loss) < NEAR else "start.verdict.far"
    return {
        ui.answer: t(
            "start.says",
            language,
            loss=f"{first.loss:.2f}",
            vocabulary=f"{config.vocab_size:,}",
            uniform=f"{first.uniform_loss:.2f}",
            verdict=t(verdict, language),
        ),
        ui.logits: logits(first, language),
        ui.norms: norms(residual_norms(config, seed=seed), trained, config.n_layer, language),
    }


def logits(first: InitialPrediction, language: Language) -> str:
    """The logits of one position as a histogram."""
    found = first.logits.float().numpy()
    limit = max(0.5, float(np.abs(found).max()))
    counts, edges = np.histogram(found, bins=BINS, range=(-limit, limit))
    figure = curve_figures.histogram(
        counts / len(found), edges, x_title=t("start.logit", language), y_title=t("start.share", language)
    )
    best = first.logits.softmax(-1).max().item()
    text = t(
        "start.logits.says",
        language,
        std=f"{first.logits_std:.3f}",
        best=percent(best),
        even=percent(1 / len(found)),
    )
    return chart_value(figure, text)


def norms(found: ResidualNorms, trained: tuple[float, ...], n_layer: int, language: Language) -> str:
    """Lengths along the layers: of a fresh model with the scaling and without, and of the running one."""
    named = {"scaled": found.scaled, "unscaled": found.unscaled}
    figure = lines(
        np.arange(n_layer + 1),
        {t(f"start.{name}", language): np.array(lengths) for name, lengths in named.items()},
        x_title=t("start.after", language),
        y_title=t("start.norm", language),
        markers=True,
    )
    text = t(
        "start.norms.says",
        language,
        begin=f"{found.scaled[0]:.2f}",
        scaled=f"{found.scaled[-1]:.2f}",
        unscaled=f"{found.unscaled[-1]:.2f}",
        factor=f"1/√{2 * n_layer} = {1 / math.sqrt(2 * n_layer):.3f}",
    )
    note = ""
    if trained:
        note = t("start.trained", language, begin=f"{trained[0]:.2f}", end=f"{trained[-1]:.2f}")
    return chart_value(figure, text, note)
