"""The Activations tab: GELU and ReLU with their slopes, and the numbers that the model really sends through."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import gradio as gr
import numpy as np
import torch

from components import figures
from components.frame import Frame
from components.i18n import Language, Words, say
from components.labels import percent
from components.playground.tab import LOOKING, Playground
from components.session import Session
from components.widgets.chart import chart, chart_value
from components.widgets.sentence import sentence
from gpt import Generation
from gpt.experiments import activation_curve, lowest_point, pre_activations

SPAN = 3.0  # both pictures show [-SPAN, SPAN]
POINTS = 241
BINS = 60
SHOWN = {"gelu_tanh": "GELU (tanh)", "gelu": "GELU (erf)", "relu": "ReLU"}


@dataclass(frozen=True)
class Activations:
    """The components of the tab."""

    x: gr.Slider
    curves: gr.HTML
    layer: gr.Dropdown
    histogram: gr.HTML


def build_activations(words: Words, frame: Frame, tab: gr.Tab, playground: Playground) -> Activations:
    """Lay the tab out and wire it; the histogram is of the document in the Playground."""
    with gr.Column(elem_classes="gb-card"):
        words.build(sentence, {"value": "activations.question"}, kind="question")
        words.build(sentence, {"value": "activations.says"}, kind="lead")
        x = gr.Slider(-SPAN, SPAN, value=1.0, step=0.05, label="x", elem_id="activation-x")
        curves = chart(curves_value(1.0, "en"), elem_id="curves")
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            words.build(sentence, {"value": "activations.histogram"}, kind="question")
            n_layer = frame.example.loaded.model.config.n_layer
            layer = words.build(
                gr.Dropdown,
                {"label": "attention.layer"},
                choices=list(range(n_layer)),
                value=0,
                elem_id="activation-layer",
                min_width=72,
            )
        histogram = chart(histogram_value(frame.example, 0, "en"), elem_id="pre-activations")
    ui = Activations(x, curves, layer, histogram)

    latest = {"trigger_mode": "always_last", **LOOKING}
    gr.on([x.change, frame.language.change], curves_value, [x, frame.language], curves, **latest)
    looked = [playground.session, layer, frame.language]
    changed = [layer.input, frame.language.change, tab.select]
    gr.on(changed, partial(_histogram, ui), looked, [layer, histogram], **latest)
    return ui


def curves_value(x: float, language: Language) -> str:
    """The three functions with their slopes, and their values at x."""
    grid, at = torch.linspace(-SPAN, SPAN, POINTS), torch.tensor(float(x))
    curves = {name: activation_curve(name, grid) for name in SHOWN}
    here = {name: activation_curve(name, at) for name in SHOWN}
    figure = figures.activation_curves(
        grid.numpy(),
        {label: curves[name].y.numpy() for name, label in SHOWN.items()},
        {label: curves[name].slope.numpy() for name, label in SHOWN.items()},
        at=float(x),
        flat=flattest(),
        function_title=say("activations.function", language),
        slope_title=say("activations.slope", language),
    )
    values = {name: f"{curve.y.item():.4f}" for name, curve in here.items()}
    slopes = {f"d_{name}": f"{curve.slope.item():.4f}" for name, curve in here.items()}
    text = say("activations.values", language, x=f"{x:.2f}", zero=f"{flattest():.4f}", **values, **slopes)
    return chart_value(figure, text)


@lru_cache(maxsize=1)
def flattest() -> float:
    """Where GPT-2's GELU is flat."""
    return lowest_point("gelu_tanh")


def histogram_value(document: Generation, layer: int, language: Language) -> str:
    """The pre-activations of one layer, over all positions that the model has read."""
    ids = document.ids[: document.n_read]
    values = pre_activations(document.loaded.model, ids, layer).float().cpu().numpy().ravel()
    counts, edges = np.histogram(values, bins=BINS, range=(-SPAN, SPAN))
    figure = figures.histogram(
        counts / len(values),
        edges,
        x_title=say("activations.pre", language),
        y_title=say("activations.count", language),
    )
    text = say(
        "activations.histogram.says",
        language,
        layer=layer,
        n=f"{len(values):,}",
        tokens=len(ids),
        negative=percent((values < 0).mean()),
        mean=f"{values.mean():.2f}",
        std=f"{values.std():.2f}",
        outside=percent(1 - counts.sum() / len(values)),
    )
    return chart_value(figure, text)


def _histogram(ui: Activations, session: Session, layer: int, language: Language) -> dict[Any, Any]:
    document = session.document
    if document is None:
        return {ui.histogram: ""}
    n_layer = document.loaded.model.config.n_layer
    layer = min(layer, n_layer - 1)
    return {
        ui.layer: gr.update(choices=list(range(n_layer)), value=layer),
        ui.histogram: histogram_value(document, layer, language),
    }
