"""The Activations tab: activation functions with their slopes, a histogram of pre-activations, and a replacement."""

from __future__ import annotations

from typing import Any

import gradio as gr

from components.events import Events, clamp_js
from components.labels import ACTIVATIONS
from components.localized import Localizer
from components.panels.activation_curves import SPAN
from components.render import Control
from components.state.snapshot import Snapshot
from components.tabs.activations import handlers
from components.tabs.activations.components import ActivationsComponents, ActivationsState
from components.tabs.activations.views import VIEWS
from components.widgets.chart import chart

NAME = "activations"


def build_activations(localizer: Localizer, events: Events, n_layer: int, layer: int) -> None:
    """Build and wire the tab. n_layer: of the initial model; layer: the selected one."""
    ui = _layout(localizer, n_layer, layer)
    controls = [Control(ui.layer, _layers, lambda s: {"choices": list(range(_layers(s)[0])), "value": _layers(s)[1]})]
    events.renderer.add(NAME, VIEWS, handlers.ANALYSIS, controls=controls)
    latest: Any = {"trigger_mode": "always_last"}
    events.on(ui.x.input, handlers.set_x, [ui.x], js=clamp_js(-SPAN, SPAN), **latest)
    events.on(ui.layer.input, handlers.choose_layer, [ui.layer], **latest)
    events.on(ui.activation.input, handlers.choose_activation, [ui.activation], **latest)


def _layers(s: Snapshot) -> tuple[int, int]:
    """The number of layers, and the selected one."""
    return (1 if s.text is None else s.text.config.n_layer), s.selection.layer


def _layout(localizer: Localizer, n_layer: int, selected: int) -> ActivationsComponents:
    state = ActivationsState()
    with gr.Column(elem_classes="gb-card"):
        localizer.sentence("activations.question", kind="question")
        localizer.sentence("activations.says", kind="lead")
        x = gr.Slider(-SPAN, SPAN, value=state.x, step=0.05, label="x", elem_id="activation-x")
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=300, scale=3):
                chart(elem_id="curves", view="curves")
            with gr.Column(min_width=280, scale=2):
                localizer.sentence("activations.exact.question", kind="question")
                chart(elem_id="exact-gelu", view="exact-gelu")
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            localizer.sentence("activations.histogram", kind="question")
            layer = localizer.build(
                gr.Dropdown,
                {"label": "attention.layer"},
                choices=list(range(n_layer)),
                value=selected,
                allow_custom_value=True,  # an event may carry a layer of the previous model
                elem_id="activation-layer",
                min_width=72,
            )
        chart(elem_id="pre-activations", view="pre-activations")
    with gr.Column(elem_classes="gb-card gb-panel"):
        localizer.sentence("activations.swap.question", kind="question")
        activation = localizer.build(
            gr.Radio,
            {"label": "activations.swap"},
            choices=[(title, name) for name, title in ACTIVATIONS.items()],
            value=state.activation,
            elem_id="activation-swap",
            elem_classes="gb-segments",
            container=False,
        )
        chart(elem_id="activation-swapped", view="activation-swapped")
    return ActivationsComponents(x=x, layer=layer, activation=activation)
