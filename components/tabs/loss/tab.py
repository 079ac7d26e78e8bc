"""The Loss tab: the surprisal of any text, in total and by token; builds and wires it."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from components.api.arguments import MAX_SCORED_TOKENS
from components.events import Events
from components.i18n import Language, t
from components.localized import Localizer
from components.render import Control
from components.state.example import encodable_text
from components.state.snapshot import Snapshot
from components.tabs.loss import handlers
from components.tabs.loss.components import EXAMPLES, LossComponents, LossState
from components.tabs.loss.views import VIEWS, strip_labels
from components.widgets.sentence import sentence
from components.widgets.tokens import tokens
from components.widgets.widget import placed
from gpt import LoadedModel

NAME = "loss"


def build_loss(localizer: Localizer, events: Events, loaded: LoadedModel) -> None:
    """Build and wire the tab. loaded: the model that scores the example."""
    example = encodable_text(loaded, next(iter(EXAMPLES.values())))
    ui = _layout(localizer, example)
    controls = [
        Control(ui.measure, running, lambda s: {"interactive": not running(s)}),
        Control(ui.stop, running, lambda s: {"interactive": running(s)}),
        Control(ui.text, lambda s: s.state(LossState).times_filled, _filled),
    ]
    events.renderer.add(NAME, VIEWS, handlers.analysis(loaded, example), controls=controls)
    _wire(ui, events)


def running(s: Snapshot) -> bool:
    return s.state(LossState).running


def _filled(s: Snapshot) -> dict[str, Any]:
    state = s.state(LossState)
    return {"value": state.filled} if state.times_filled else {}


def _layout(localizer: Localizer, example: str) -> LossComponents:
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card gb-loss"):
        localizer.sentence("loss.question", kind="question")
        localizer.sentence("loss.what", kind="caption", limit=f"{MAX_SCORED_TOKENS:,}")
        parts["text"] = localizer.build(
            gr.Textbox,
            {"label": "loss.text", "placeholder": "loss.placeholder"},
            value=example,
            lines=3,
            max_lines=12,
            elem_id="loss-text",
        )
        with gr.Row(elem_classes="gb-examples"):
            parts["examples"] = tuple(
                localizer.build(gr.Button, {"value": key}, size="sm", min_width=0, elem_id=key.replace(".", "-"))
                for key in EXAMPLES
            )
        with gr.Row(elem_classes="gb-loss-tools"):
            with gr.Row(elem_classes="gb-buttons gb-short"):
                parts["measure"] = localizer.build(
                    gr.Button,
                    {"value": "loss.measure"},
                    variant="primary",
                    size="md",
                    elem_id="loss-measure",
                    min_width=0,
                )
                parts["stop"] = localizer.build(
                    gr.Button, {"value": "stop"}, size="md", elem_id="loss-stop", interactive=False, min_width=0
                )
            parts["stride"] = localizer.build(
                gr.Dropdown,
                {"label": "loss.stride", "info": "loss.stride.info", "choices": stride_choices},
                value=handlers.HALF,
                elem_id="loss-stride",
            )
        placed(sentence(kind="notice", elem_id="loss-notice", view="loss-notice"))
        placed(sentence(kind="status", elem_id="loss-status", view="loss-status"))
    with gr.Column(elem_classes="gb-card gb-loss"):
        placed(sentence(kind="lead", elem_id="loss-headline", view="loss-headline"))
        placed(sentence(kind="caption", elem_id="loss-says", view="loss-says"))
        parts["strip"] = placed(tokens(elem_id="loss-strip", labels=strip_labels("en"), view="loss-strip"))
        placed(sentence(kind="lead", elem_id="loss-token", view="loss-token"))
    return LossComponents(**parts)


def stride_choices(language: Language) -> list[tuple[str, int]]:
    """(label, divisor of the context length) of each stride."""
    keys = ("loss.stride.whole", "loss.stride.half", "loss.stride.quarter", "loss.stride.eighth")
    return [(t(key, language), parts) for key, parts in zip(keys, handlers.STRIDES, strict=True)]


def _wire(ui: LossComponents, events: Events) -> None:
    on = events.on
    typed = [ui.text, ui.stride]
    runs = [on([ui.measure.click, ui.text.submit], handlers.measure, typed, queue="model")]
    for text, button in zip(EXAMPLES.values(), ui.examples, strict=True):
        runs.append(on(button.click, partial(handlers.measure_text, text=text), [ui.stride], queue="model"))
    on(ui.stop.click, handlers.stop, cancels=runs)
    on(ui.strip.select, handlers.select, [ui.strip], trigger_mode="always_last")
