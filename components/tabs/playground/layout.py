"""Layout of the Playground."""

from __future__ import annotations

from typing import Any, get_args

import gradio as gr

from components.i18n import Language, t
from components.localized import Localizer
from components.share.menu import files_menu
from components.state.selection import Shading
from components.state.session import Session
from components.state.settings import LIMITS, MAX_LENGTH, PACES, Limit, Settings
from components.tabs.playground.components import EXAMPLES, PRESETS, Unit
from components.text_views import head_choices
from components.widgets.chart import chart
from components.widgets.choices import choices
from components.widgets.draw import draw
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.tokens import tokens
from components.widgets.tree import tree


def prompt(localizer: Localizer, typed: str) -> dict[str, Any]:
    """The prompt box and its buttons."""
    with gr.Column(elem_classes="gb-card gb-prompt"):
        prompt = localizer.build(
            gr.Textbox,
            {"label": "prompt", "placeholder": "prompt.placeholder"},
            value=typed,
            lines=3,
            max_lines=8,
            elem_id="prompt",
        )
        tokens(elem_id="prompt-strip", ids=True, selectable=False, view="prompt-strip")
        sentence(kind="caption", elem_id="prompt-count", view="prompt-count")
        with gr.Row(elem_classes="gb-buttons"):
            generate = localizer.build(
                gr.Button, {"value": "generate"}, variant="primary", size="md", elem_id="generate", min_width=0
            )
            step = localizer.build(gr.Button, {"value": "step"}, size="md", elem_id="step", min_width=0)
            stop = localizer.build(
                gr.Button, {"value": "stop"}, size="md", elem_id="stop", interactive=False, min_width=0
            )
            clear = localizer.build(gr.Button, {"value": "clear"}, size="md", elem_id="clear", min_width=0)
        localizer.sentence("examples", kind="caption")
        with gr.Row(elem_classes="gb-examples"):
            examples = tuple(
                localizer.build(gr.Button, {"value": key}, size="sm", min_width=0, elem_id=key.replace(".", "-"))
                for key in EXAMPLES
            )
    return {
        "prompt": prompt,
        "generate": generate,
        "step": step,
        "stop": stop,
        "clear": clear,
        "examples": examples,
    }


def _slider(localizer: Localizer, name: str, limit: Limit) -> gr.Slider:
    return localizer.build(
        gr.Slider,
        {"label": name, "info": f"{name}.info"},
        minimum=limit.low,
        maximum=limit.high,
        step=limit.step,
        value=limit.default,
        elem_id=name.replace("_", "-"),
    )


def settings(localizer: Localizer) -> dict[str, Any]:
    """The sampling settings and the length."""
    parts: dict[str, Any] = {}
    with localizer.build(gr.Accordion, {"label": "settings"}, open=True, elem_classes="gb-card gb-settings"):
        parts["preset"] = _presets(localizer)
        parts["sampling"] = {name: _slider(localizer, name, limit) for name, limit in LIMITS.items()}
        parts["length"] = localizer.build(
            gr.Slider,
            {"label": "length", "info": "length.info"},
            minimum=1,
            maximum=MAX_LENGTH,
            step=1,
            value=Settings.length,
            elem_id="length",
        )
        with gr.Row():
            parts["seed"] = localizer.build(
                gr.Textbox,
                {"label": "seed", "placeholder": "seed.placeholder"},
                max_length=18,
                elem_id="seed",
                min_width=110,
            )
            parts["pace"] = localizer.build(
                gr.Dropdown,
                {"label": "pace", "choices": _pace_choices},
                value=50,
                elem_id="pace",
                min_width=110,
            )
    return parts


def _pace_choices(language: Language) -> list[tuple[str, int]]:
    return [(str(pace) if pace else t("pace.full", language), pace) for pace in PACES]


def text(localizer: Localizer) -> dict[str, Any]:
    """The token strip, its status and the edit controls."""
    with gr.Column(elem_classes="gb-card gb-text"):
        sentence(kind="status", elem_id="status", view="status")
        sentence(kind="notice", elem_id="notice", view="notice")
        use_tail = gr.Button(visible=False, size="sm", elem_id="use-tail")
        sentence(kind="caption", elem_id="dropped", view="dropped")
        strip = tokens(elem_id="strip", view="strip")
        with gr.Row(elem_classes="gb-steer"):
            edit_buttons = {name: _small_button(localizer, name) for name in ("undo", "redo", "back", "go_on")}
        with gr.Row(elem_classes="gb-strip-tools"):
            sentence(kind="caption", elem_id="hint", view="hint")
            shading = localizer.build(
                gr.Radio,
                {"label": "strip.shading", "choices": _shading_choices},
                value="probability",
                elem_id="shading",
                elem_classes="gb-segments",
                container=False,
            )
        draw(elem_id="draw", view="draw")
        branches = tree(elem_id="tree", view="tree")
        files = files_menu()
    return edit_buttons | {
        "tree": branches,
        "files": files,
        "use_tail": use_tail,
        "strip": strip,
        "shading": shading,
    }


def _shading_choices(language: Language) -> list[tuple[str, str]]:
    return [(t(f"strip.shading.{kind}", language), kind) for kind in get_args(Shading)]


def _small_button(localizer: Localizer, name: str) -> gr.Button:
    is_enabled = name == "go_on"
    return localizer.build(gr.Button, {"value": name}, size="sm", elem_id=name, min_width=0, interactive=is_enabled)


def bars(localizer: Localizer) -> dict[str, Any]:
    """The next-token bars, and the box for another token."""
    localizer.sentence("bars.question", kind="question")
    localizer.sentence("bars.choose", kind="caption")
    picture = chart(elem_id="bars", view="bars")
    box = localizer.build(
        gr.Textbox,
        {"label": "box", "placeholder": "box.placeholder", "info": "box.info"},
        max_length=2000,
        elem_id="box",
    )
    return {"bars": picture, "box": box, "hits": choices(elem_id="hits", view="hits")}


def attention(localizer: Localizer, session: Session) -> dict[str, Any]:
    """The attention heatmap. The pickers accept any value, since an event may still carry one of a previous model."""
    config, selection = session.document.loaded.model.config, session.selection
    with gr.Row(elem_classes="gb-card-head"):
        localizer.sentence("attention.question", kind="question")
        layer = localizer.build(
            gr.Dropdown,
            {"label": "attention.layer"},
            choices=list(range(config.n_layer)),
            value=selection.layer,
            allow_custom_value=True,
            elem_id="layer",
            min_width=72,
        )
        head = localizer.build(
            gr.Dropdown,
            {"label": "attention.head"},
            choices=head_choices(config.n_head, "en"),
            value=selection.head,
            allow_custom_value=True,
            elem_id="head",
            min_width=120,
        )
    heatmap = chart(elem_id="heatmap", clickable=True, view="heatmap")
    return {"layer": layer, "head": head, "heatmap": heatmap}


def pipeline(localizer: Localizer) -> dict[str, Any]:
    """The sampling pipeline, stage by stage; collapsed, and computed while it is open."""

    def units(language: Language) -> list[tuple[str, str]]:
        return [(t(f"pipeline.{unit}", language), unit) for unit in get_args(Unit)]

    card = {"open": False, "elem_id": "pipeline", "elem_classes": "gb-card gb-pipeline"}
    with localizer.build(gr.Accordion, {"label": "pipeline"}, **card) as accordion:
        sentence(kind="caption", elem_id="pipeline-lead", view="pipeline-lead")
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=300):
                table(elem_id="pipeline-stages", view="pipeline-stages")
                follow = localizer.build(
                    gr.Dropdown,
                    {"label": "pipeline.follow"},
                    choices=[],
                    value=None,
                    allow_custom_value=True,
                    elem_id="pipeline-follow",
                )
                table(elem_id="pipeline-token", view="pipeline-token")
            with gr.Column(min_width=300):
                unit = localizer.build(
                    gr.Radio,
                    {"label": "pipeline.unit", "choices": units},
                    value="probability",
                    elem_id="pipeline-unit",
                    elem_classes="gb-segments",
                    container=False,
                )
                lines = chart(elem_id="pipeline-lines", clickable=True, view="pipeline-lines")
    return {"pipeline": accordion, "follow": follow, "unit": unit, "lines": lines}


def _presets(localizer: Localizer) -> gr.Radio:
    """Presets of all sampling settings."""

    def choices(language: Language) -> list[tuple[str, str]]:
        return [(t(f"preset.{name}", language), name) for name in PRESETS]

    return localizer.build(
        gr.Radio,
        {"label": "preset", "choices": choices},
        value="balanced",
        elem_id="preset",
        elem_classes="gb-segments",
        container=False,
    )
