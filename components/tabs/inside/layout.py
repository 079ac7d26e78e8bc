"""Layout of the Inside tab: one inner tab for each part."""

from __future__ import annotations

from typing import Any, get_args

import gradio as gr

from components.i18n import Language, t
from components.localized import Localizer
from components.tabs.inside.components import AttentionView, Model
from components.widgets.chart import chart
from components.widgets.flow import flow
from components.widgets.heads import heads
from components.widgets.layers import layers
from components.widgets.lines import lines
from components.widgets.sentence import sentence
from components.widgets.stages import stages
from components.widgets.table import table
from components.widgets.tokens import tokens
from components.widgets.widget import placed


def machine(localizer: Localizer) -> dict[str, Any]:
    """The flow diagram and the overview of all heads."""
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            localizer.sentence("inside.question", kind="question")
            follow = localizer.build(gr.Button, {"value": "film.open"}, size="sm", min_width=0, elem_id="follow")
            model = localizer.build(
                gr.Radio,
                {"label": "bare.shown", "choices": _model_choices},
                value=get_args(Model)[0],
                elem_id="flow-model",
                elem_classes="gb-segments",
                container=False,
            )
        placed(sentence(kind="lead", elem_id="flow-lead", view="flow-lead"))
        placed(sentence(kind="caption", elem_id="flow-family", view="flow-family"))
        picture = placed(flow(elem_id="flow", view="flow"))
    with gr.Column(elem_classes="gb-card"):
        localizer.sentence("inside.heads.question", kind="question")
        placed(sentence(kind="caption", elem_id="heads-whose", view="heads-whose"))
        overview = placed(heads(elem_id="heads", view="heads"))
    return {"follow": follow, "model": model, "flow": picture, "heads": overview}


def one_head(localizer: Localizer) -> dict[str, Any]:
    """The stages of one head, and the attention between tokens."""
    with gr.Column(elem_classes="gb-card"):
        localizer.sentence("stages.question", kind="question")
        localizer.sentence("stages.lead", kind="caption")
        pictures = placed(stages(elem_id="stages", view="stages"))
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            localizer.sentence("lines.question", kind="question")
            view = localizer.build(
                gr.Dropdown,
                {"label": "lines.view", "choices": _view_choices},
                value=get_args(AttentionView)[0],
                elem_id="lines-view",
                min_width=72,
            )
        placed(sentence(kind="caption", elem_id="lines-what", view="lines-what"))
        picture = placed(lines(elem_id="lines", view="lines"))
    return {"stages": pictures, "attention_view": view, "lines": picture}


def stream(localizer: Localizer) -> dict[str, Any]:
    """The residual stream and the neurons."""
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            localizer.sentence("stream.tokens.question", kind="question")
            layer = placed(layers(elem_id="stream-layer", view="stream-layer"))
        placed(sentence(kind="caption", elem_id="stream-tokens-says", view="stream-tokens-says"))
        strip = placed(tokens(elem_id="stream-tokens", view="stream-tokens"))
    with gr.Row(elem_classes="gb-cards gb-why-cards"):
        with gr.Column(elem_classes="gb-card", min_width=300):
            localizer.sentence("stream.question", kind="question")
            norms = placed(chart(elem_id="stream-norms", clickable=True, view="stream-norms"))
        with gr.Column(elem_classes="gb-card", min_width=300):
            localizer.sentence("stream.shares.question", kind="question")
            shares = placed(chart(elem_id="stream-shares", clickable=True, view="stream-shares"))
    with gr.Column(elem_classes="gb-card"):
        localizer.sentence("neurons.question", kind="question")
        placed(chart(elem_id="neurons", view="neurons"))
        placed(table(elem_id="neurons-table", words_from=4, view="neurons-table"))
    return {"layers": layer, "tokens": strip, "norms": norms, "shares": shares}


def embeddings(localizer: Localizer) -> dict[str, Any]:
    """Token and position embeddings."""
    with gr.Row(elem_classes="gb-cards"):
        with gr.Column(elem_classes="gb-card", min_width=300):
            localizer.sentence("embeddings.question", kind="question")
            placed(chart(elem_id="nearest-tokens", view="nearest-tokens"))
        with gr.Column(elem_classes="gb-card", min_width=300):
            localizer.sentence("places.question", kind="question")
            placed(chart(elem_id="position-similarity", view="position-similarity"))
            placed(sentence(kind="caption", elem_id="no-positions", view="no-positions"))
    return {}


def trace_file(localizer: Localizer) -> dict[str, Any]:
    """A button that saves all activations."""
    with gr.Row(elem_classes="gb-trace-file"):
        save = localizer.build(gr.Button, {"value": "trace.save"}, size="sm", min_width=0, elem_id="trace-save")
        placed(sentence(kind="caption", elem_id="trace-said", view="trace-said"))
    return {"save": save}


def _model_choices(language: Language) -> list[tuple[str, str]]:
    return [(t(f"bare.{model}", language), model) for model in get_args(Model)]


def _view_choices(language: Language) -> list[tuple[str, str]]:
    return [(t(f"lines.view.{view}", language), view) for view in get_args(AttentionView)]
