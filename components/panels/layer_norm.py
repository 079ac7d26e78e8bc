"""The panel on layer normalisation: rows of numbers before and after, with every mean and variance."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any, get_args

import gradio as gr
import torch

from components.errors import PageError
from components.frame import Frame
from components.i18n import Language, t
from components.labels import decimal, quoted
from components.legacy import Playground
from components.localized import Words
from components.panels.panel import Panel, Values, document_of, make_panel
from components.panels.panel_figures import row_bars
from components.widgets.chart import chart, chart_value
from components.widgets.sentence import sentence
from components.widgets.table import table, table_value
from gpt import Generation
from gpt.experiments.normalisation import Norm, Normalised, linear_relu_rows, norm_input, normalise

EXAMPLE, MODEL = "example", "model"
EPS = {"0.00000001": 1e-8, "0.00001": 1e-5, "0.001": 1e-3, "0.1": 0.1, "1": 1.0}
USUAL = "0.00001"


@dataclass(frozen=True)
class LayerNormPanel:
    """The components of the panel."""

    playground: Playground
    source: gr.Radio
    norm: gr.Dropdown
    layer: gr.Dropdown
    position: gr.Slider
    scale: gr.Slider
    shift: gr.Slider
    eps: gr.Dropdown
    answer: gr.HTML
    notice: gr.HTML
    before: gr.HTML
    after: gr.HTML
    numbers: gr.HTML


def build_layer_norm(words: Words, frame: Frame, playground: Playground) -> Panel:
    """Lay the panel out; it shows the curriculum's two rows, or the running model's at a token and a layer."""
    parts: dict[str, Any] = {"playground": playground}
    with gr.Column(elem_classes="gb-card gb-panel"):
        words.build(sentence, {"value": "norm.question"}, kind="question")
        parts["answer"] = sentence(kind="lead", elem_id="norm-answer")
        parts["notice"] = sentence(kind="notice", elem_id="norm-notice")
        parts |= _controls(words, frame)
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=280):
                words.build(sentence, {"value": "norm.before"}, kind="question")
                parts["before"] = chart(elem_id="norm-before")
            with gr.Column(min_width=280):
                words.build(sentence, {"value": "norm.after"}, kind="question")
                parts["after"] = chart(elem_id="norm-after")
        parts["numbers"] = table(elem_id="norm-numbers")
        words.build(sentence, {"value": "norm.note"}, kind="caption")
    ui = LayerNormPanel(**{field.name: parts[field.name] for field in fields(LayerNormPanel)})
    return make_panel(
        frame,
        playground,
        partial(draw, ui),
        controls=[ui.source, ui.norm, ui.layer, ui.position, ui.scale, ui.shift, ui.eps],
        outputs=[ui.norm, ui.layer, ui.position, ui.answer, ui.before, ui.after, ui.numbers],
        notice=ui.notice,
    )


def _controls(words: Words, frame: Frame) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    config = frame.example.loaded.model.config
    with gr.Row(elem_classes="gb-panel-controls"):
        parts["source"] = words.build(
            gr.Radio, {"label": "norm.source", "choices": source_choices}, value=EXAMPLE, elem_id="norm-source"
        )
        parts["norm"] = words.build(
            gr.Dropdown,
            {"label": "norm.which", "choices": norm_choices},
            value="ln_1",
            elem_id="norm-which",
            visible=False,
        )
        parts["layer"] = words.build(
            gr.Dropdown,
            {"label": "attention.layer"},
            choices=list(range(config.n_layer)),
            value=0,
            elem_id="norm-layer",
            visible=False,
        )
        parts["position"] = words.build(
            gr.Slider,
            {"label": "norm.position", "info": "norm.position.info"},
            minimum=0,
            maximum=max(1, config.block_size - 1),
            step=1,
            value=1,
            elem_id="norm-position",
            visible=False,
        )
    with gr.Row(elem_classes="gb-panel-controls"):
        slider = partial(words.build, gr.Slider)
        parts["scale"] = slider(
            {"label": "norm.scale", "info": "norm.scale.info"},
            minimum=-1,
            maximum=3,
            step=0.05,
            value=1,
            elem_id="norm-scale",
        )
        parts["shift"] = slider(
            {"label": "norm.shift", "info": "norm.shift.info"},
            minimum=-2,
            maximum=2,
            step=0.05,
            value=0,
            elem_id="norm-shift",
        )
        parts["eps"] = words.build(
            gr.Dropdown,
            {"label": "norm.eps", "info": "norm.eps.info"},
            choices=list(EPS),
            value=USUAL,
            elem_id="norm-eps",
        )
    return parts


def source_choices(language: Language) -> list[tuple[str, str]]:
    """(what the switch says, where the rows come from)."""
    return [(t(f"norm.source.{source}", language), source) for source in (EXAMPLE, MODEL)]


def norm_choices(language: Language) -> list[tuple[str, str]]:
    """(what the picker says, name of the module)."""
    return [(t(f"norm.which.{norm}", language), norm) for norm in get_args(Norm)]


def draw(ui: LayerNormPanel, values: Values, entering: bool) -> Values:
    """Everything again. Entering takes token and layer from the visitor's selection."""
    language: Language = values[ui.playground.frame.language]
    document = document_of(values, ui.playground)
    from_model = values[ui.source] == MODEL
    controls: Values = {ui.norm: gr.update(visible=from_model)}
    if from_model and document is None:
        raise PageError("error.no_text")
    if document is None:
        layer, position = 0, 0
    else:
        config, last = document.loaded.model.config, document.n_read - 1
        look = values[ui.playground.session].selection
        layer, position = (look.layer, look.at(document)) if entering else (values[ui.layer], int(values[ui.position]))
        layer, position = min(layer, config.n_layer - 1), min(position, last)
        has_layer = from_model and values[ui.norm] != "ln_f"
        controls |= {
            ui.layer: gr.update(choices=list(range(config.n_layer)), value=layer, visible=has_layer),
            ui.position: gr.update(maximum=max(1, last), value=position, visible=from_model),
        }
    if from_model:
        rows, names = model_rows(document, values, ui, layer, position)
    else:
        rows = normalise(linear_relu_rows(), scale=values[ui.scale], shift=values[ui.shift], eps=EPS[values[ui.eps]])
        names = [t("norm.row", language, n=n + 1) for n in range(len(rows.before))]
    return controls | told(ui, rows, names, language)


def model_rows(
    document: Generation, values: Values, ui: LayerNormPanel, layer: int, position: int
) -> tuple[Normalised, list[str]]:
    """The token at a position and the one before it, on their way through one normalisation of the model."""
    first = max(0, position - 1)
    found = norm_input(document.loaded.model, document.ids[: position + 1], values[ui.norm], layer)
    rows = normalise(
        found.rows[first:].float(),
        scale=values[ui.scale] * found.scale.float(),
        shift=values[ui.shift] + found.shift.float(),
        eps=EPS[values[ui.eps]],
    )
    tokenizer = document.loaded.tokenizer
    return rows, [f"{quoted(tokenizer, document.ids[p])} · {p}" for p in range(first, position + 1)]


def told(ui: LayerNormPanel, rows: Normalised, names: list[str], language: Language) -> Values:
    """The answer, both pictures and the table."""
    stages = {"before": rows.before, "standard": rows.standard, "after": rows.after}
    columns = ("mean", "variance", "unbiased")
    lines = [[t("norm.table.stage", language), *(t(f"norm.table.{column}", language) for column in columns)]]
    stats = {stage: statistics(part) for stage, part in stages.items()}
    for row, name in enumerate(names):
        for stage in stages:
            title = f"{name}, {t(f'norm.stage.{stage}', language)}"
            lines.append([title, *(number(column[row]) for column in stats[stage])])
    row = len(names) - 1
    (mean, variance), (new_mean, new_variance), (last_mean, last_variance) = (
        [number(column[row]) for column in stats[stage][:2]] for stage in stages
    )
    answer = t(
        "norm.says",
        language,
        row=names[row],
        mean=mean,
        variance=variance,
        new_mean=new_mean,
        new_variance=new_variance,
        last_mean=last_mean,
        last_variance=last_variance,
    )
    return {
        ui.answer: answer,
        ui.before: picture("before", rows.before, names, language),
        ui.after: picture("after", rows.after, names, language),
        ui.numbers: table_value(lines),
    }


def statistics(rows: torch.Tensor) -> list[list[float]]:
    """Mean, variance that divides by n, and variance that divides by n - 1, of each row."""
    variances = (rows.var(dim=1, unbiased=unbiased) for unbiased in (False, True))
    return [rows.mean(dim=1).tolist(), *(variance.tolist() for variance in variances)]


def number(value: float) -> str:
    """Four digits after the point; what rounds to nothing is 0.0000, without a sign."""
    return decimal(value, 4)


def picture(when: str, rows: torch.Tensor, names: list[str], language: Language) -> str:
    """Rows as bars."""
    stds = rows.std(dim=1, unbiased=False)
    figure = row_bars(
        rows.cpu().numpy(), names, rows.mean(dim=1).tolist(), stds.tolist(), place_title=t("norm.place", language)
    )
    return chart_value(figure, t("norm.picture", language, when=t(f"norm.{when}", language), n=f"{rows.shape[1]:,}"))
