"""The panel on the feed-forward part: one token widened, bent and brought back, with its hidden activations."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import gradio as gr
import numpy as np
import torch

from components.errors import PageError
from components.frame import Frame
from components.i18n import Language, t
from components.labels import ACTIVATIONS, decimal, percent, quoted
from components.legacy import Playground
from components.localized import Words
from components.panels.panel import Panel, Values, document_of, make_panel
from components.panels.panel_figures import grid
from components.tabs.shapes.figures import part_bars
from components.widgets.chart import chart, chart_value
from components.widgets.sentence import sentence
from gpt import GPT, Trace

QUIET = 0.05  # what is closer to zero hardly counts


@dataclass(frozen=True)
class FeedForwardPanel:
    """The components of the panel."""

    frame: Frame
    playground: Playground
    layer: gr.Dropdown
    position: gr.Slider
    answer: gr.HTML
    notice: gr.HTML
    widths: gr.HTML
    name_before: gr.HTML
    before: gr.HTML
    name_after: gr.HTML
    after: gr.HTML


def build_feed_forward(words: Words, frame: Frame, playground: Playground) -> Panel:
    """Lay the panel out; it follows the selected token through one layer of the visitor's model."""
    parts: dict[str, Any] = {"frame": frame, "playground": playground}
    config = frame.example.loaded.model.config
    with gr.Column(elem_classes="gb-card gb-panel"):
        words.build(sentence, {"value": "ff.question"}, kind="question")
        parts["answer"] = sentence(kind="lead", elem_id="ff-answer")
        parts["notice"] = sentence(kind="notice", elem_id="ff-notice")
        with gr.Row(elem_classes="gb-panel-controls"):
            parts["layer"] = words.build(
                gr.Dropdown,
                {"label": "attention.layer"},
                choices=list(range(config.n_layer)),
                value=0,
                elem_id="ff-layer",
            )
            parts["position"] = words.build(
                gr.Slider,
                {"label": "ff.position", "info": "ff.position.info"},
                minimum=0,
                maximum=max(1, config.block_size - 1),
                step=1,
                value=0,
                elem_id="ff-position",
            )
        parts["widths"] = chart(elem_id="ff-widths")
        with gr.Row(elem_classes="gb-columns"):
            for side in ("before", "after"):
                with gr.Column(min_width=280):
                    parts[f"name_{side}"] = sentence(kind="question", elem_id=f"ff-name-{side}")
                    parts[side] = chart(elem_id=f"ff-{side}")
    ui = FeedForwardPanel(**{field.name: parts[field.name] for field in fields(FeedForwardPanel)})
    return make_panel(
        frame,
        playground,
        partial(draw, ui),
        controls=[ui.layer, ui.position],
        outputs=[ui.layer, ui.position, ui.answer, ui.widths, ui.name_before, ui.before, ui.name_after, ui.after],
        notice=ui.notice,
    )


def draw(ui: FeedForwardPanel, values: Values, entering: bool) -> Values:
    """One token in one layer. Entering takes both from the visitor's selection."""
    language: Language = values[ui.frame.language]
    document = document_of(values, ui.playground)
    if document is None:
        raise PageError("error.no_text")
    config, last = document.loaded.model.config, document.n_read - 1
    look = values[ui.playground.session].selection
    layer, position = (look.layer, look.at(document)) if entering else (values[ui.layer], int(values[ui.position]))
    layer, position = min(layer, config.n_layer - 1), min(position, last)
    before, after = hidden(document.loaded.model, document.ids[: position + 1], layer)
    activation = ACTIVATIONS[config.activation]
    strongest = int(after.argmax())
    return {
        ui.layer: gr.update(choices=list(range(config.n_layer)), value=layer),
        ui.position: gr.update(maximum=max(1, last), value=position),
        ui.answer: t(
            "ff.says",
            language,
            layer=layer,
            token=quoted(document.loaded.tokenizer, document.ids[position]),
            width=f"{config.n_embd:,}",
            hidden=f"{len(after):,}",
            activation=activation,
            active=percent((after > 0).mean()),
            neuron=strongest,
            value=decimal(after[strongest]),
        ),
        ui.widths: widths(config.n_embd, len(after), position + 1, activation, language),
        ui.name_before: t("ff.before", language, activation=activation),
        ui.name_after: t("ff.after", language, activation=activation),
        ui.before: picture(
            before,
            t(
                "ff.before.says",
                language,
                hidden=f"{len(before):,}",
                low=decimal(before.min()),
                high=decimal(before.max()),
                negative=percent((before < 0).mean()),
            ),
            language,
        ),
        ui.after: picture(
            after,
            t(
                "ff.after.says",
                language,
                low=decimal(after.min()),
                high=decimal(after.max()),
                quiet=percent((np.abs(after) < QUIET).mean()),
            ),
            language,
        ),
    }


@torch.inference_mode()
def hidden(model: GPT, ids: list[int], layer: int) -> tuple[np.ndarray, np.ndarray]:
    """What the last token's feed-forward part holds before and after the activation, (n_ff,) each."""
    trace = Trace()
    model.hidden_states(torch.tensor([ids], device=model.device), trace=trace)
    here = trace.layers[layer]
    return here.mlp_pre[0, -1].float().cpu().numpy(), here.mlp_post[0, -1].float().cpu().numpy()


def widths(width: int, n_ff: int, tokens: int, activation: str, language: Language) -> str:
    """The four stages as bars, each as long as the vector of one token, with the shape of all of them."""
    sizes = {"in": width, "pre": n_ff, "post": n_ff, "out": width}
    names = [t(f"ff.{key}", language, activation=activation) for key in sizes]
    figure = part_bars(names, np.array(list(sizes.values())), [f"[{tokens}, {size}]" for size in sizes.values()])
    return chart_value(figure, t("ff.shapes", language))


def picture(values: np.ndarray, text: str, language: Language) -> str:
    """Hidden numbers as cells, row by row, about twice as wide as high; what does not fill the last row stays blank."""
    columns = max(1, round((2 * len(values)) ** 0.5))
    rows = -(-len(values) // columns)
    cells = np.full(rows * columns, np.nan, dtype=np.float32)
    cells[: len(values)] = values
    return chart_value(grid(cells.reshape(rows, columns), value_title=t("ff.neuron", language)), text)
