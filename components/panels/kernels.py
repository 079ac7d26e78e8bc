"""The panel on speed: what the KV cache and the attention kernel save, counted, and measured on demand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import gradio as gr
import numpy as np

from components.errors import PageError
from components.frame import Frame
from components.i18n import Language, t
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
from components.tabs.shapes.views import memory
from components.widgets.chart import chart, chart_value
from components.widgets.sentence import sentence
from components.widgets.table import table, table_value
from gpt import Generation, GPTConfig
from gpt.experiments.shapes import cache_numbers
from gpt.experiments.speed import SpeedRow, measure_speed, next_token_cost

SHORTEST = 16  # tokens; each further length is the double
SECONDS = 15.0  # of measuring
KINDS = (("cached", "sdpa"), ("cached", "eager"), ("plain", "sdpa"), ("plain", "eager"))


@dataclass(frozen=True)
class KernelsPanel:
    """The components of the panel."""

    frame: Frame
    playground: Playground
    answer: gr.HTML
    notice: gr.HTML
    counted: gr.HTML
    measure: Experiment
    measured: gr.HTML
    bytes: gr.HTML


def build_kernels(words: Words, frame: Frame, playground: Playground) -> Panel:
    """Lay the panel out; it counts for the visitor's model at once, and measures when asked to."""
    parts: dict[str, Any] = {"frame": frame, "playground": playground}
    with gr.Column(elem_classes="gb-card gb-panel"):
        words.build(sentence, {"value": "kernels.question"}, kind="question")
        parts["answer"] = sentence(kind="lead", elem_id="kernels-answer")
        parts["notice"] = sentence(kind="notice", elem_id="kernels-notice")
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=280):
                parts["counted"] = chart(elem_id="kernels-counted")
            with gr.Column(min_width=280):
                says = partial(t, "kernels.measure.says", seconds=f"{SECONDS:g}")
                words.build(sentence, {"value": says}, kind="caption")
                parts["measure"] = build_experiment(words, "kernels.measure", "kernels")
                parts["measured"] = chart(elem_id="kernels-measured")
        words.build(sentence, {"value": "kernels.bytes.question"}, kind="question")
        parts["bytes"] = table(elem_id="kernels-bytes")
        words.build(sentence, {"value": "kernels.bytes.note"}, kind="caption")
    ui = KernelsPanel(**{field.name: parts[field.name] for field in fields(KernelsPanel)})
    wire_experiment(
        frame,
        ui.measure,
        partial(measure, ui),
        [ui.measured],
        ui.notice,
        reads=[playground.session],
        alone=False,
    )
    return make_panel(
        frame,
        playground,
        partial(draw, ui),
        controls=[],
        outputs=[ui.answer, ui.counted, ui.measured, ui.bytes],
        notice=ui.notice,
        reads=[ui.measure.found],
    )


def lengths_of(config: GPTConfig) -> list[int]:
    """16, 32, ... and the whole context."""
    doubles = [SHORTEST << i for i in range(16) if SHORTEST << i < config.block_size]
    return [*doubles, config.block_size]


def draw(ui: KernelsPanel, values: Values, entering: bool) -> Values:
    """What can be counted; and what was measured, told again."""
    language: Language = values[ui.frame.language]
    document = document_of(values, ui.playground)
    if document is None:
        raise PageError("error.no_text")
    config = document.loaded.model.config
    size = document.loaded.model.dtype.itemsize
    lengths = lengths_of(config)
    costs = {
        kind: [
            next_token_cost(config, n, cached=kind[0] == "cached", kernel=kind[1], number_bytes=size) for n in lengths
        ]
        for kind in KINDS
    }
    cached, plain = costs["cached", "sdpa"], costs["plain", "eager"]
    figure = lines(
        np.array(lengths),
        {
            t("kernels.cached", language): np.array([cost.multiplications for cost in cached]),
            t("kernels.plain", language): np.array([cost.multiplications for cost in plain]),
        },
        x_title=t("kernels.length", language),
        y_title=t("kernels.multiplications", language),
        log_x=True,
        log_y=True,
        markers=True,
    )
    columns = ("kernels.bytes.tokens", "kernels.bytes.cache", "kernels.bytes.eager")
    rows = [[t(key, language) for key in columns]]
    rows += [
        [f"{a.length:,}", memory(a.cache_bytes), memory(b.weight_bytes)] for a, b in zip(cached, plain, strict=True)
    ]
    found = values[ui.measure.found]
    return {
        ui.answer: t(
            "kernels.says",
            language,
            length=lengths[-1],
            cached=short(cached[-1].multiplications),
            plain=short(plain[-1].multiplications),
            ratio=f"{plain[-1].multiplications / cached[-1].multiplications:,.0f}",
            bytes=memory(cache_numbers(config) * size),
        ),
        ui.counted: chart_value(figure, t("kernels.counted", language)),
        ui.measured: measured(found, language) if found else "",
        ui.bytes: table_value(rows),
    }


def short(n: int) -> str:
    """A large number in millions or thousand millions."""
    return f"{n / 1e9:,.2f} × 10⁹" if n >= 1e9 else f"{n / 1e6:,.2f} × 10⁶"


def measure(ui: KernelsPanel, values: Values) -> Iterator[Values]:
    """Time one length after the other; it ends before one that would take longer than there is."""
    language: Language = values[ui.frame.language]
    document = document_of(values, ui.playground)
    if document is None:
        raise PageError("error.no_text")
    rows: list[SpeedRow] = []
    began = time.monotonic()
    list(measure_speed(document.loaded.model, text_of(document), [1], repeats=1))  # the first pass is slower
    for length in lengths_of(document.loaded.model.config):
        if rows and 12 * slowest(rows) > SECONDS - (time.monotonic() - began):
            last = rows[-1].cost.length
            yield {ui.notice: t("kernels.short", language, length=last, seconds=f"{SECONDS:g}")}
            return
        rows = [*rows, *measure_speed(document.loaded.model, text_of(document), [length])]
        yield {ui.measured: measured(rows, language), ui.measure.found: rows}


def slowest(rows: list[SpeedRow]) -> float:
    """The slowest token at the last length, in seconds; twice as many tokens take some twelve times that."""
    return max(row.seconds for row in rows[-len(KINDS) :])


def text_of(document: Generation) -> list[int]:
    """The visitor's text; it is repeated where it is too short."""
    return document.ids[: document.n_read]


def measured(rows: list[SpeedRow], language: Language) -> str:
    """Tokens a second of the four ways, as the text grows."""
    rates: dict[tuple[str, str], dict[int, float]] = {kind: {} for kind in KINDS}
    for row in rows:
        kind = ("cached" if row.cost.cached else "plain", row.cost.kernel)
        rates[kind][row.cost.length] = row.tokens_per_second
    lengths = list(rates[KINDS[0]])
    figure = lines(
        np.array(lengths),
        {t(f"kernels.{a}.{b}", language): np.array(list(rates[a, b].values())) for a, b in KINDS},
        x_title=t("kernels.length", language),
        y_title=t("kernels.rate", language),
        log_x=True,
        markers=True,
    )
    last = {kind: f"{rate[lengths[-1]]:,.0f}" for kind, rate in rates.items()}
    text = t(
        "kernels.measured",
        language,
        length=lengths[-1],
        cached=last["cached", "sdpa"],
        plain=last["plain", "sdpa"],
        sdpa=last["cached", "sdpa"],
        eager=last["cached", "eager"],
    )
    return chart_value(figure, text)
