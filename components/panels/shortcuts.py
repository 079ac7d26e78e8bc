"""The panel on shortcut connections: the gradient of every layer, without them and with them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import gradio as gr
import numpy as np

from components.errors import PageError
from components.frame import Frame
from components.i18n import Language, t
from components.labels import ACTIVATIONS
from components.legacy import Playground
from components.localized import Words
from components.panels.panel import Panel, Values, make_panel
from components.panels.panel_figures import pair_bars
from components.widgets.chart import chart, chart_value
from components.widgets.sentence import sentence
from components.widgets.table import table, table_value
from gpt.experiments.shortcuts import ShortcutGradients, shortcut_gradients

MAX_SEED = 2**31 - 1


@dataclass(frozen=True)
class ShortcutsPanel:
    """The components of the panel."""

    frame: Frame
    depth: gr.Slider
    width: gr.Slider
    seed: gr.Number
    activation: gr.Dropdown
    answer: gr.HTML
    notice: gr.HTML
    gradients: gr.HTML
    numbers: gr.HTML


def build_shortcuts(words: Words, frame: Frame, playground: Playground) -> Panel:
    """Lay the panel out; it opens with the curriculum's five layers of three."""
    parts: dict[str, Any] = {"frame": frame}
    with gr.Column(elem_classes="gb-card gb-panel"):
        words.build(sentence, {"value": "shortcuts.question"}, kind="question")
        parts["answer"] = sentence(kind="lead", elem_id="shortcuts-answer")
        parts["notice"] = sentence(kind="notice", elem_id="shortcuts-notice")
        with gr.Row(elem_classes="gb-panel-controls"):
            for name, high, value in (("depth", 16, 5), ("width", 64, 3)):
                parts[name] = words.build(
                    gr.Slider,
                    {"label": f"shortcuts.{name}", "info": f"shortcuts.{name}.info"},
                    minimum=1,
                    maximum=high,
                    step=1,
                    value=value,
                    elem_id=f"shortcuts-{name}",
                )
            parts["activation"] = words.build(
                gr.Dropdown,
                {"label": "shortcuts.activation"},
                choices=[(title, name) for name, title in ACTIVATIONS.items()],
                value="gelu_tanh",
                elem_id="shortcuts-activation",
            )
            parts["seed"] = words.build(
                gr.Number, {"label": "shortcuts.seed"}, value=123, precision=0, elem_id="shortcuts-seed"
            )
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=280, scale=2):
                parts["gradients"] = chart(elem_id="shortcuts-gradients")
            with gr.Column(min_width=280):
                parts["numbers"] = table(elem_id="shortcuts-numbers")
    ui = ShortcutsPanel(**{field.name: parts[field.name] for field in fields(ShortcutsPanel)})
    return make_panel(
        frame,
        playground,
        partial(draw, ui),
        controls=[ui.depth, ui.width, ui.activation, ui.seed],
        outputs=[ui.answer, ui.gradients, ui.numbers],
        notice=ui.notice,
    )


def draw(ui: ShortcutsPanel, values: Values, entering: bool) -> Values:
    """The gradients of one step of both networks."""
    language: Language = values[ui.frame.language]
    seed = values[ui.seed]
    if not isinstance(seed, int) or not 0 <= seed <= MAX_SEED:
        raise PageError("shortcuts.seed.error", limit=f"{MAX_SEED:,}")
    found = shortcut_gradients(
        depth=int(values[ui.depth]), width=int(values[ui.width]), seed=seed, activation=values[ui.activation]
    )
    titles = [t(f"shortcuts.{kind}", language) for kind in ("without", "with")]
    pair = dict(zip(titles, (found.without, found.with_shortcuts), strict=True))
    names = [str(layer) for layer in range(len(found.without))]
    figure = pair_bars(
        names,
        {title: np.array(values) for title, values in pair.items()},
        log=True,
        value_title=t("shortcuts.gradient", language),
        name_title=t("shortcuts.layer", language),
    )
    lines = [[t("shortcuts.layer", language), *titles]]
    lines += [[name, *(f"{side[i]:.6g}" for side in pair.values())] for i, name in enumerate(names)]
    return {
        ui.answer: says(found, language),
        ui.gradients: chart_value(figure, t("shortcuts.picture", language)),
        ui.numbers: table_value(lines),
    }


def says(found: ShortcutGradients, language: Language) -> str:
    """What reaches the first layer, and how much more of it with shortcuts."""
    without, with_shortcuts = found.without[0], found.with_shortcuts[0]
    if with_shortcuts == without == 0:
        return t("shortcuts.dead", language)
    if without == 0:
        return t("shortcuts.nothing", language, with_shortcuts=f"{with_shortcuts:.3g}")
    ratio = with_shortcuts / without
    shown = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
    return t("shortcuts.says", language, without=f"{without:.3g}", with_shortcuts=f"{with_shortcuts:.3g}", ratio=shown)
