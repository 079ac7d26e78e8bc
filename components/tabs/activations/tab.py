"""The Activations tab: the functions with their slopes, what the model really sends through, and a swap."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache, partial
from typing import Any

import gradio as gr
import numpy as np
import torch

from components.figures import charts as figures
from components.frame import Frame
from components.i18n import Language, t
from components.labels import ACTIVATIONS, decimal, percent, power, quoted, token_text
from components.legacy import Playground, Values, document_of, make_panel
from components.localized import Words
from components.panels import curve_figures
from components.panels.panel import best_of_both
from components.panels.panel_figures import lines
from components.widgets.chart import chart, chart_value
from components.widgets.sentence import sentence
from gpt import Edits, Generation
from gpt.config import Activation
from gpt.experiments.activations import activation_curve, gelu_difference, lowest_point, pre_activations
from gpt.experiments.masks import total_variation

SPAN = 3.0  # all pictures show [-SPAN, SPAN]
POINTS = 241
BINS = 60
DRAWN = ("gelu_tanh", "relu", "silu")  # the exact GELU would lie on the first
BARS = 8


@dataclass(frozen=True)
class Activations:
    """The components of the tab."""

    frame: Frame
    playground: Playground
    x: gr.Slider
    curves: gr.HTML
    exact: gr.HTML
    layer: gr.Dropdown
    histogram: gr.HTML
    activation: gr.Radio
    swapped: gr.HTML
    notice: gr.HTML


def build_activations(words: Words, frame: Frame, tab: gr.Tab, playground: Playground) -> Activations:
    """Lay the tab out and wire it; what is of the model is of the document in the Playground."""
    parts: dict[str, Any] = {"frame": frame, "playground": playground}
    with gr.Column(elem_classes="gb-card"):
        words.build(sentence, {"value": "activations.question"}, kind="question")
        words.build(sentence, {"value": "activations.says"}, kind="lead")
        parts["notice"] = sentence(kind="notice", elem_id="activations-notice")
        parts["x"] = gr.Slider(-SPAN, SPAN, value=1.0, step=0.05, label="x", elem_id="activation-x")
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=300, scale=3):
                parts["curves"] = chart(elem_id="curves")
            with gr.Column(min_width=280, scale=2):
                words.build(sentence, {"value": "activations.exact.question"}, kind="question")
                parts["exact"] = chart(elem_id="exact-gelu")
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            words.build(sentence, {"value": "activations.histogram"}, kind="question")
            n_layer = frame.example.loaded.model.config.n_layer
            parts["layer"] = words.build(
                gr.Dropdown,
                {"label": "attention.layer"},
                choices=list(range(n_layer)),
                value=0,
                elem_id="activation-layer",
                min_width=72,
            )
        parts["histogram"] = chart(elem_id="pre-activations")
    with gr.Column(elem_classes="gb-card gb-panel"):
        words.build(sentence, {"value": "activations.swap.question"}, kind="question")
        parts["activation"] = words.build(
            gr.Radio,
            {"label": "activations.swap"},
            choices=[(title, name) for name, title in ACTIVATIONS.items()],
            value="relu",
            elem_id="activation-swap",
            elem_classes="gb-segments",
            container=False,
        )
        parts["swapped"] = chart(elem_id="activation-swapped")
    ui = Activations(**{field.name: parts[field.name] for field in fields(Activations)})
    _wire(ui, tab)
    return ui


def _wire(ui: Activations, tab: gr.Tab) -> None:
    """Three parts, each drawn when the tab opens and when its own control moves."""
    for draw, control, outputs in (
        (draw_curves, ui.x, [ui.curves, ui.exact]),
        (draw_histogram, ui.layer, [ui.layer, ui.histogram]),
        (draw_swap, ui.activation, [ui.swapped]),
    ):
        panel = make_panel(
            ui.frame, ui.playground, partial(draw, ui), controls=[control], outputs=outputs, notice=ui.notice
        )
        panel.show_on(tab.select)


def draw_curves(ui: Activations, values: Values, entering: bool) -> Values:
    """Both pictures of functions."""
    x, language = float(values[ui.x]), values[ui.frame.language]
    return {ui.curves: curves_value(x, language), ui.exact: exact_value(x, language)}


def draw_histogram(ui: Activations, values: Values, entering: bool) -> Values:
    """What one layer of the visitor's model sends through; nothing without a text."""
    document = document_of(values, ui.playground)
    if document is None:
        return {ui.histogram: ""}
    n_layer = document.loaded.model.config.n_layer
    layer = min(values[ui.layer], n_layer - 1)
    return {
        ui.layer: gr.update(choices=list(range(n_layer)), value=layer),
        ui.histogram: histogram_value(document, layer, values[ui.frame.language]),
    }


def draw_swap(ui: Activations, values: Values, entering: bool) -> Values:
    """What the model would say after the selected token; nothing without a text."""
    document = document_of(values, ui.playground)
    if document is None:
        return {ui.swapped: ""}
    position = values[ui.playground.session].selection.at(document)
    return {ui.swapped: swap_value(document, position, values[ui.activation], values[ui.frame.language])}


def curves_value(x: float, language: Language) -> str:
    """The functions with their slopes, and their values at x."""
    at = torch.tensor(float(x))
    grid = torch.cat((torch.linspace(-SPAN, SPAN, POINTS), at[None])).sort().values  # the legend says the values at x
    curves = {name: activation_curve(name, grid) for name in DRAWN}
    here = {name: activation_curve(name, at) for name in DRAWN}
    figure = curve_figures.activation_curves(
        grid.numpy(),
        {ACTIVATIONS[name]: curve.y.numpy() for name, curve in curves.items()},
        {ACTIVATIONS[name]: curve.slope.numpy() for name, curve in curves.items()},
        at=at.item(),
        flat=flattest(),
        function_title=t("activations.function", language),
        slope_title=t("activations.slope", language),
        flat_name=t("activations.flat", language),
    )
    values = {name: decimal(curve.y.item(), 4) for name, curve in here.items()}
    slopes = {f"d_{name}": decimal(curve.slope.item(), 4) for name, curve in here.items()}
    text = t("activations.values", language, x=decimal(x, 2), zero=decimal(flattest(), 4), **values, **slopes)
    return chart_value(figure, text)


@lru_cache(maxsize=1)
def flattest() -> float:
    """Where GPT-2's GELU is flat."""
    return lowest_point("gelu_tanh")


def exact_value(x: float, language: Language) -> str:
    """How far GPT-2's GELU is from the exact one, and how far at x."""
    grid = torch.linspace(-SPAN, SPAN, POINTS)
    difference = gelu_difference(grid)
    figure = lines(
        grid.numpy(),
        {t("activations.exact", language): difference.numpy()},
        x_title="x",
        y_title=t("activations.exact", language),
        mark=(decimal(x, 2), x),
        height=280,
    )
    here = gelu_difference(torch.tensor(float(x))).item()
    most = difference.abs().max().item()
    text = t("activations.exact.says", language, x=decimal(x, 2), here=power(here), most=power(most))
    return chart_value(figure, text)


def histogram_value(document: Generation, layer: int, language: Language) -> str:
    """The pre-activations of one layer, over all positions that the model has read."""
    ids = document.ids[: document.n_read]
    values = pre_activations(document.loaded.model, ids, layer).float().cpu().numpy().ravel()
    counts, edges = np.histogram(values, bins=BINS, range=(-SPAN, SPAN))
    figure = curve_figures.histogram(
        counts / len(values),
        edges,
        x_title=t("activations.pre", language),
        y_title=t("activations.count", language),
    )
    text = t(
        "activations.histogram.says",
        language,
        layer=layer,
        n=f"{len(values):,}",
        tokens=len(ids),
        negative=percent((values < 0).mean()),
        mean=decimal(float(values.mean()), 2),
        std=f"{values.std():.2f}",
        outside=percent(1 - counts.sum() / len(values)),
    )
    return chart_value(figure, text)


@torch.inference_mode()
def swap_value(document: Generation, position: int, activation: Activation, language: Language) -> str:
    """The next token after a position, with the activation that the model was trained with and with another one."""
    model, tokenizer = document.loaded.model, document.loaded.tokenizer
    idx = torch.tensor([document.ids[: position + 1]], device=model.device)
    usual, changed = model(idx)[0, -1], model(idx, edits=Edits(activation=activation))[0, -1]
    before, after = (logits.float().softmax(-1).cpu() for logits in (usual, changed))  # (vocab_size,) each
    shown = best_of_both(before, after, BARS)
    trained = ACTIVATIONS[model.config.activation]
    figure = figures.next_token_bars(
        [token_text(tokenizer, token_id) for token_id in shown],
        before[shown].numpy(),
        after[shown].numpy(),
        before_name=t("activations.swap.before", language, name=trained),
        after_name=t("activations.swap.after", language, name=ACTIVATIONS[activation]),
        chosen_name=t("bars.chosen", language),
    )
    best = shown[0]
    told = {"token": quoted(tokenizer, document.ids[position]), "best": quoted(tokenizer, best)}
    told |= {"before": percent(before[best].item()), "name": ACTIVATIONS[activation]}
    if activation == model.config.activation:
        return chart_value(figure, t("activations.swap.same", language, **told))
    told |= {"after": percent(after[best].item()), "new_best": quoted(tokenizer, after.argmax().item())}
    share = percent(round(total_variation(usual, changed).item(), 6))
    return chart_value(figure, t("activations.swap.says", language, moved=share, **told))
