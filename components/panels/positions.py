"""The panel on positions: rotations to look at, and two tiny models that read beyond their trained length."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import gradio as gr
import numpy as np
import torch

from components.frame import Frame
from components.i18n import Language, t
from components.labels import percent
from components.legacy import Playground
from components.localized import Words
from components.panels.panel import Experiment, Panel, Values, build_experiment, make_panel, wire_experiment
from components.panels.panel_figures import lines
from components.panels.position_figures import Hands, circles
from components.widgets.chart import chart, chart_value
from components.widgets.sentence import sentence
from gpt.experiments.positions import Extrapolation, rotary_closeness, train_extrapolation
from gpt.model import rotary_angles

HEAD_SIZE = 16  # of the pictures
PAIRS = (0, 2, 4, 6)
FURTHEST = 64
TRAINED, TESTED, STEPS = 32, 96, 240
SECONDS = 30.0
KINDS = ("learned", "rotary")


@dataclass(frozen=True)
class PositionsPanel:
    """The components of the panel."""

    frame: Frame
    position: gr.Slider
    distance: gr.Slider
    answer: gr.HTML
    notice: gr.HTML
    circles: gr.HTML
    closeness: gr.HTML
    train: Experiment
    beyond: gr.HTML


def build_positions(words: Words, frame: Frame, playground: Playground) -> Panel:
    """Lay the panel out; the rotations are there at once, the two models learn when asked to."""
    parts: dict[str, Any] = {"frame": frame}
    with gr.Column(elem_classes="gb-card gb-panel"):
        words.build(sentence, {"value": "positions.question"}, kind="question")
        parts["answer"] = sentence(kind="lead", elem_id="positions-answer")
        parts["notice"] = sentence(kind="notice", elem_id="positions-notice")
        with gr.Row(elem_classes="gb-panel-controls"):
            parts["position"] = words.build(
                gr.Slider,
                {"label": "positions.position"},
                minimum=0,
                maximum=FURTHEST,
                step=1,
                value=20,
                elem_id="positions-position",
            )
            parts["distance"] = words.build(
                gr.Slider,
                {"label": "positions.distance", "info": "positions.distance.info"},
                minimum=0,
                maximum=FURTHEST,
                step=1,
                value=3,
                elem_id="positions-distance",
            )
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=280):
                parts["circles"] = chart(elem_id="positions-circles")
            with gr.Column(min_width=280):
                parts["closeness"] = chart(elem_id="positions-closeness")
        words.build(sentence, {"value": "positions.beyond.question"}, kind="question")
        says = partial(t, "positions.beyond.says", trained=TRAINED, tested=TESTED, seconds=f"{SECONDS:g}")
        words.build(sentence, {"value": says}, kind="caption")
        parts["train"] = build_experiment(words, "positions.train", "positions")
        parts["beyond"] = chart(elem_id="positions-beyond")
    ui = PositionsPanel(**{field.name: parts[field.name] for field in fields(PositionsPanel)})
    wire_experiment(frame, ui.train, partial(train, ui), [ui.beyond], ui.notice)
    return make_panel(
        frame,
        playground,
        partial(draw, ui),
        controls=[ui.position, ui.distance],
        outputs=[ui.answer, ui.circles, ui.closeness, ui.beyond],
        notice=ui.notice,
        reads=[ui.train.found],
    )


def draw(ui: PositionsPanel, values: Values, entering: bool) -> Values:
    """Both pictures of rotations; and what was trained, told again."""
    language: Language = values[ui.frame.language]
    position, distance = int(values[ui.position]), int(values[ui.distance])
    closeness = rotary_closeness(HEAD_SIZE, torch.arange(FURTHEST + 1)).numpy()
    figure = lines(
        np.arange(FURTHEST + 1),
        {t("positions.closeness", language): closeness},
        x_title=t("positions.apart", language),
        y_title=t("positions.closeness", language),
        mark=(f"{distance}", distance),
        height=260,
    )
    found = values[ui.train.found]
    return {
        ui.answer: t("positions.says", language, distance=distance, closeness=percent(closeness[distance])),
        ui.circles: turned(position, position - distance, language),
        ui.closeness: chart_value(figure, t("positions.closeness.says", language)),
        ui.beyond: beyond(*found, language) if found else "",
    }


def turned(position: int, key: int, language: Language) -> str:
    """Some pairs of a head at the positions of a query and a key; the angles are the model's own."""
    cos, sin = rotary_angles(torch.tensor([position, key, 1]), HEAD_SIZE)
    pairs = torch.atan2(sin, cos)[:, list(PAIRS)].numpy()  # (3, pairs)
    hands = [
        Hands(t("positions.pair", language, n=pair), float(pairs[0, i]), float(pairs[1, i]))
        for i, pair in enumerate(PAIRS)
    ]
    figure = circles(hands, t("positions.query", language), t("positions.key", language))
    degrees = np.degrees(pairs[2])
    text = t(
        "positions.circles",
        language,
        size=HEAD_SIZE,
        position=position,
        key_position=key,
        last=PAIRS[-1],
        slower=f"{degrees[0] / degrees[-1]:,.0f} ×",
        angles=", ".join(f"{angle:.3g}°" for angle in degrees),
    )
    return chart_value(figure, text)


def train(ui: PositionsPanel, values: Values) -> Iterator[Values]:
    """Both models learn, in turn, and read the longer texts again and again; it ends after SECONDS at the latest."""
    language: Language = values[ui.frame.language]
    began = time.monotonic()
    runs = [train_extrapolation(kind, trained_length=TRAINED, tested_length=TESTED, steps=STEPS) for kind in KINDS]
    for learned, rotary in zip(*runs, strict=True):
        found = (learned, rotary)
        yield {ui.beyond: beyond(*found, language), ui.train.found: found}
        if time.monotonic() - began > SECONDS:
            break


def beyond(learned: Extrapolation, rotary: Extrapolation, language: Language) -> str:
    """The loss at every position, within the trained length and beyond it."""
    figure = lines(
        np.arange(1, len(learned.by_position) + 1),
        {t(f"positions.{found.position}", language): np.array(found.by_position) for found in (learned, rotary)},
        x_title=t("positions.place", language),
        y_title=t("positions.loss", language),
        level=(t("positions.floor", language), learned.floor),
        mark=(t("positions.trained", language), learned.trained_length),
    )
    text = t(
        "positions.beyond.picture",
        language,
        steps=learned.steps,
        trained=learned.trained_length,
        learned_in=f"{learned.inside:.2f}",
        rotary_in=f"{rotary.inside:.2f}",
        learned_out=f"{learned.beyond:.2f}",
        rotary_out=f"{rotary.beyond:.2f}",
    )
    return chart_value(figure, text)
