"""The panel on masks: what every token would see without the causal one, and padding without its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import gradio as gr
import numpy as np
import torch

from components.errors import PageError
from components.frame import Frame
from components.i18n import Language, t
from components.labels import percent, quoted, token_text
from components.legacy import Playground
from components.localized import Words
from components.panels.panel import (
    Experiment,
    Panel,
    Values,
    build_experiment,
    document_of,
    make_panel,
    wire_experiment,
)
from components.panels.panel_figures import lines
from components.widgets.chart import chart, chart_value
from components.widgets.sentence import sentence
from gpt import Generation
from gpt.experiments.masks import MaskEffect, RandomTextLosses, future_leak, padding_effect, train_on_random_text

MOST_TOKENS = 48  # of the text, read at once and without a cache
STEPS, SECONDS = 80, 20.0  # of learning
TICK = 0.25  # seconds between two pictures of it


@dataclass(frozen=True)
class MasksPanel:
    """The components of the panel."""

    frame: Frame
    playground: Playground
    position: gr.Slider
    answer: gr.HTML
    notice: gr.HTML
    causal: gr.HTML
    n_padding: gr.Slider
    side: gr.Radio
    padding: gr.HTML
    learn: Experiment
    losses: gr.HTML


def build_masks(words: Words, frame: Frame, playground: Playground) -> Panel:
    """Lay the panel out; it is about the beginning of the visitor's text."""
    parts: dict[str, Any] = {"frame": frame, "playground": playground}
    with gr.Column(elem_classes="gb-card gb-panel"):
        words.build(sentence, {"value": "masks.question"}, kind="question")
        parts["answer"] = sentence(kind="lead", elem_id="masks-answer")
        parts["notice"] = sentence(kind="notice", elem_id="masks-notice")
        with gr.Row(elem_classes="gb-panel-controls"):
            parts["position"] = words.build(
                gr.Slider,
                {"label": "masks.position", "info": "masks.position.info"},
                minimum=1,
                maximum=MOST_TOKENS - 1,
                step=1,
                value=8,
                elem_id="masks-position",
            )
        parts["causal"] = chart(elem_id="masks-causal")
        words.build(sentence, {"value": "masks.padding.question"}, kind="question")
        with gr.Row(elem_classes="gb-panel-controls"):
            parts["n_padding"] = words.build(
                gr.Slider,
                {"label": "masks.padding", "info": "masks.padding.info"},
                minimum=1,
                maximum=32,
                step=1,
                value=8,
                elem_id="masks-padding-length",
            )
            parts["side"] = words.build(
                gr.Radio, {"label": "masks.side", "choices": side_choices}, value="left", elem_id="masks-side"
            )
        parts["padding"] = chart(elem_id="masks-padding")
        words.build(sentence, {"value": "masks.learn.question"}, kind="question")
        words.build(sentence, {"value": "masks.learn.says"}, kind="caption")
        parts["learn"] = build_experiment(words, "masks.learn", "masks")
        parts["losses"] = chart(elem_id="masks-losses")
    ui = MasksPanel(**{field.name: parts[field.name] for field in fields(MasksPanel)})
    wire_experiment(frame, ui.learn, partial(learn, ui), [ui.losses], ui.notice)
    return make_panel(
        frame,
        playground,
        partial(draw, ui),
        controls=[ui.position, ui.n_padding, ui.side],
        outputs=[ui.position, ui.answer, ui.causal, ui.padding, ui.losses],
        notice=ui.notice,
        reads=[ui.learn.found],
    )


def side_choices(language: Language) -> list[tuple[str, str]]:
    """(what the switch says, side)."""
    return [(t(f"masks.side.{side}", language), side) for side in ("left", "right")]


def draw(ui: MasksPanel, values: Values, entering: bool) -> Values:
    """Both pictures again. Entering takes the selected token, as far as it lies in the beginning of the text."""
    language: Language = values[ui.frame.language]
    document = document_of(values, ui.playground)
    ids = [] if document is None else document.ids[: min(document.n_read, MOST_TOKENS)]
    if len(ids) < 2:
        raise PageError("masks.error.short")
    look = values[ui.playground.session].selection
    position = look.at(document) if entering else int(values[ui.position])
    if entering and position >= len(ids) - 1:
        position = len(ids) // 2  # at the end nothing would stand behind it
    position = min(max(1, position), len(ids) - 1)
    other = runner_up(document, ids, position)
    effect = future_leak(document.loaded.model, ids, position, other)
    tokenizer = document.loaded.tokenizer
    most = share(effect.without_mask[:position])
    return {
        ui.position: gr.update(maximum=len(ids) - 1, value=position),
        ui.answer: t(
            "masks.says",
            language,
            old=quoted(tokenizer, ids[position]),
            new=quoted(tokenizer, other),
            position=position,
            most=most,
        ),
        ui.causal: causal(document, ids, position, effect, language),
        ui.padding: padding(document, ids, int(values[ui.n_padding]), values[ui.side], language),
        ui.losses: losses(found, language) if (found := values[ui.learn.found]) else "",
    }


@torch.inference_mode()
def runner_up(document: Generation, ids: list[int], position: int) -> int:
    """The token, other than the one at a position, that the model held most probable there."""
    device = document.loaded.model.device
    best = document.loaded.model(torch.tensor([ids[:position]], device=device))[0, -1].topk(2).indices.tolist()
    return best[1] if best[0] == ids[position] else best[0]


def causal(document: Generation, ids: list[int], position: int, effect: MaskEffect, language: Language) -> str:
    """How far every prediction moves when one token is exchanged."""
    figure = moves(document, ids, effect, language, mark=(t("masks.exchanged", language), position))
    before = (share(side[:position]) for side in (effect.with_mask, effect.without_mask))
    return chart_value(
        figure, t("masks.causal.picture", language, **dict(zip(("kept", "leaked"), before, strict=True)))
    )


def padding(document: Generation, ids: list[int], n_padding: int, side: str, language: Language) -> str:
    """How far every prediction moves when padding is put before or behind a text."""
    config, pad_id = document.loaded.model.config, document.loaded.tokenizer.eot_id or 0
    ids = ids[: config.block_size - n_padding]
    effect = padding_effect(document.loaded.model, ids, n_padding, pad_id=pad_id, side=side)
    kept, moved = share(effect.with_mask), share(effect.without_mask)
    name = t(f"masks.side.{side}", language)
    text = t("masks.padding.picture", language, n=n_padding, side=name, kept=kept, moved=moved)
    note = t("masks.padding.right", language) if side == "right" else ""
    return chart_value(moves(document, ids, effect, language), text + note)


def share(moved: torch.Tensor) -> str:
    """The largest of some changes; what is only rounding is 0."""
    return percent(round(moved.max().item(), 4))


def moves(
    document: Generation,
    ids: list[int],
    effect: MaskEffect,
    language: Language,
    mark: tuple[str, int] | None = None,
) -> Any:
    """With the mask and without it, after each token."""
    sides = {"masks.without": effect.without_mask, "masks.with": effect.with_mask}
    return lines(
        np.arange(len(ids)),
        {t(key, language): side.cpu().numpy() for key, side in sides.items()},
        ticks=[token_text(document.loaded.tokenizer, token_id) for token_id in ids],
        x_title=t("masks.token", language),
        y_title=t("masks.moved", language),
        mark=mark,
        markers=True,
        height=300,
    )


def learn(ui: MasksPanel, values: Values) -> Iterator[Values]:
    """Two tiny models learn, and their losses are drawn as they fall; it ends after SECONDS at the latest."""
    language: Language = values[ui.frame.language]
    began = drawn = time.monotonic()
    for found in train_on_random_text(steps=STEPS):
        now = time.monotonic()
        if now - drawn >= TICK:
            drawn = now
            yield {ui.losses: losses(found, language), ui.learn.found: found}
        if now - began > SECONDS:
            break
    yield {ui.losses: losses(found, language), ui.learn.found: found}


def losses(found: RandomTextLosses, language: Language) -> str:
    """Both losses over the updates, and the best honest one."""
    sides = {"masks.without": found.without_mask, "masks.with": found.with_mask}
    n = len(found.with_mask)
    figure = lines(
        np.arange(1, n + 1),
        {t(key, language): np.array(side) for key, side in sides.items()},
        x_title=t("masks.update", language),
        y_title=t("masks.loss", language),
        level=(t("masks.floor", language), found.floor),
        height=280,
    )
    kept, cheated = (f"{side[-1]:.2f}" for side in (found.with_mask, found.without_mask))
    text = t("masks.learn.picture", language, steps=n, kept=kept, cheated=cheated, floor=f"{found.floor:.2f}")
    return chart_value(figure, text)
