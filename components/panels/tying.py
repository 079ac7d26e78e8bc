"""The panel on weight tying: a switch and the counts, what sharing changes, and which rows lie together."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import gradio as gr

from components.frame import Frame
from components.i18n import Language, t
from components.labels import decimal, percent, quoted, token_text, visible
from components.legacy import Playground
from components.localized import Words
from components.panels.panel import Panel, Values, document_of, make_panel
from components.tabs.shapes import views as shape_views
from components.widgets.chart import chart
from components.widgets.sentence import sentence
from components.widgets.table import table, table_value
from gpt import PRESETS, Generation, GPTConfig, get_model
from gpt.analysis.embeddings import nearest_tokens
from gpt.experiments.shapes import UNTIED_124M
from gpt.experiments.tying import embedding_effects, tied_and_untied

PICKED, UNTIED = "picked", "untied"
NAMED = {"gpt2-medium": "GPT-2 medium", "gpt2-large": "GPT-2 large", "gpt2-xl": "GPT-2 XL"}
SHAPES = {UNTIED: UNTIED_124M, **{name: PRESETS[name] for name in NAMED}}
SMALL = GPTConfig(vocab_size=512, block_size=32, n_layer=2, n_head=4, n_embd=64)
TEXT = list(range(0, 264, 8))  # of the small model's one update: 32 tokens that are read, each with the next
NEIGHBOURS = 8


@dataclass(frozen=True)
class TyingPanel:
    """The components of the panel."""

    frame: Frame
    playground: Playground
    shape: gr.Dropdown
    tied: gr.Checkbox
    answer: gr.HTML
    notice: gr.HTML
    parts: gr.HTML
    taught: gr.HTML
    near: gr.HTML
    neighbours: gr.HTML


def build_tying(words: Words, frame: Frame, playground: Playground) -> Panel:
    """Lay the panel out; it opens with the curriculum's configuration, whose head is its own."""
    made: dict[str, Any] = {"frame": frame, "playground": playground}
    with gr.Column(elem_classes="gb-card gb-panel"):
        words.build(sentence, {"value": "tying.question"}, kind="question")
        made["answer"] = sentence(kind="lead", elem_id="tying-answer")
        made["notice"] = sentence(kind="notice", elem_id="tying-notice")
        with gr.Row(elem_classes="gb-panel-controls"):
            made["shape"] = words.build(
                gr.Dropdown, {"label": "tying.shape", "choices": shape_choices}, value=UNTIED, elem_id="tying-shape"
            )
            made["tied"] = words.build(gr.Checkbox, {"label": "tying.tied"}, value=True, elem_id="tying-tied")
        made["parts"] = chart(elem_id="tying-parts")
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=280):
                words.build(sentence, {"value": "tying.taught.question"}, kind="question")
                made["taught"] = sentence(kind="lead", elem_id="tying-taught")
            with gr.Column(min_width=280):
                words.build(sentence, {"value": "tying.near.question"}, kind="question")
                made["near"] = sentence(kind="caption", elem_id="tying-near")
                made["neighbours"] = table(elem_id="tying-neighbours")
    ui = TyingPanel(**{field.name: made[field.name] for field in fields(TyingPanel)})
    return make_panel(
        frame,
        playground,
        partial(draw, ui),
        controls=[ui.shape, ui.tied],
        outputs=[ui.answer, ui.parts, ui.taught, ui.near, ui.neighbours],
        notice=ui.notice,
    )


def shape_choices(language: Language) -> list[tuple[str, str]]:
    """(what the picker says, name of the shape)."""
    own = [(t(f"tying.shape.{name}", language), name) for name in (UNTIED, PICKED)]
    return [*own, *((title, name) for name, title in NAMED.items())]


def draw(ui: TyingPanel, values: Values, entering: bool) -> Values:
    """The counts, both ways; the small model; the neighbours of the selected token."""
    language: Language = values[ui.frame.language]
    tied = bool(values[ui.tied])
    name = values[ui.shape]
    config = SHAPES[name] if name in SHAPES else get_model(values[ui.frame.model]).model.config
    config = replace(config, tie_weights=tied)
    counts = tied_and_untied(config)
    states = [t(f"tying.state.{state}", language) for state in ("tied", "untied")]
    numbers = [f"{counts.tied:,}", f"{counts.untied:,}"]
    if not tied:
        states, numbers = states[::-1], numbers[::-1]
    effects = embedding_effects(replace(SMALL, tie_weights=tied), TEXT)
    document = document_of(values, ui.playground)
    near, neighbours = ("", "") if document is None else nearest(document, values, ui, language)
    return {
        ui.answer: t(
            "tying.says",
            language,
            now=numbers[0],
            state=states[0],
            other=numbers[1],
            other_state=states[1],
            saved=f"{counts.saved:,}",
            vocabulary=f"{config.vocab_size:,}",
            width=f"{config.n_embd:,}",
            share=percent(counts.saved / counts.untied),
        ),
        ui.parts: shape_views.parts(config, False, language),
        ui.taught: t(
            "tying.taught",
            language,
            state=states[0],
            own=percent(effects.own_token_best),
            rows=percent(effects.rows_with_gradient),
            tokens=len(TEXT) - 1,
        ),
        ui.near: near,
        ui.neighbours: neighbours,
    }


def nearest(document: Generation, values: Values, ui: TyingPanel, language: Language) -> tuple[str, str]:
    """The rows nearest to that of the selected token: a sentence and a table."""
    position = values[ui.playground.session].selection.at(document)
    tokenizer, token_id = document.loaded.tokenizer, document.ids[position]
    lines = [[t(f"tying.near.{key}", language) for key in ("token", "similarity")]]
    found = nearest_tokens(document.loaded.model, token_id, NEIGHBOURS)
    for near, cosine in zip(found.token.tolist(), found.cosine.tolist(), strict=True):
        lines.append([visible(token_text(tokenizer, near)), decimal(cosine, 3)])
    return t("tying.near", language, token=quoted(tokenizer, token_id)), table_value(lines)
