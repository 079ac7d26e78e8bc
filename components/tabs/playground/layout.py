"""Layout of the Playground."""

from __future__ import annotations

from typing import Any, get_args

import gradio as gr

from components.i18n import Language, t
from components.limits import MAX_LENGTH
from components.localized import Localizer
from components.share.menu import files_menu
from components.state.selection import Shading
from components.state.session import Session
from components.state.settings import LIMITS, PACES, Limit, Settings
from components.tabs.playground.components import EXAMPLES, PRESETS, Unit
from components.text_views import head_choices
from components.widgets.chart import chart
from components.widgets.choices import choices
from components.widgets.composer import composer
from components.widgets.draw import draw
from components.widgets.predictions import predictions
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.tokens import tokens
from components.widgets.tree import tree
from components.widgets.widget import placed


def prompt(localizer: Localizer, session: Session) -> dict[str, Any]:
    """The box of the text, what comes next and why, and the buttons."""
    with gr.Column(elem_classes="gb-card gb-prompt"):
        prompt = placed(composer(elem_id="prompt", view="box"))
        with gr.Row(elem_classes="gb-status-line"):
            placed(sentence(kind="status", elem_id="status", view="status"))
            placed(sentence(kind="caption", elem_id="prompt-count", view="prompt-count"))
        placed(sentence(kind="notice", elem_id="notice", view="notice"))
        use_tail = gr.Button(visible=False, size="sm", elem_id="use-tail")
        with gr.Row(elem_classes="gb-next gb-live"):
            with gr.Column(min_width=280):
                bars = placed(predictions(elem_id="bars", view="bars"))
            with gr.Column(min_width=240):
                localizer.sentence("reason.question", kind="question")
                placed(sentence(kind="lead", elem_id="reason", view="reason"))
                placed(sentence(kind="spoken", elem_id="spoken", view="spoken"))
                film = localizer.build(gr.Button, {"value": "film.open"}, min_width=0, elem_id="open-film")
        parts = _buttons(localizer, session)
    return {"prompt": prompt, "use_tail": use_tail, "bars": bars, "film": film, **parts}


def _buttons(localizer: Localizer, session: Session) -> dict[str, Any]:
    """The buttons, the temperature, and what folds: the other settings and the examples."""
    parts: dict[str, Any] = {"sampling": {}}
    with gr.Row(elem_classes="gb-buttons"):
        with gr.Row(elem_classes="gb-run"):
            parts |= {name: _button(localizer, name) for name in ("generate", "stop", "full_speed")}
        parts |= {name: _button(localizer, name) for name in ("step", "again")}
        parts["chat"] = localizer.build(
            gr.Checkbox,
            {"label": "chat"},
            value=session.is_chat,
            visible=session.loaded is not None and session.loaded.tokenizer.is_chat,
            container=False,
            min_width=0,
            elem_id="chat",
        )
        parts["sampling"]["temperature"] = _slider(localizer, "temperature", LIMITS["temperature"])
        with localizer.build(gr.Accordion, {"label": "examples"}, open=False, elem_classes="gb-fold gb-examples"):
            parts["examples"] = tuple(
                localizer.build(gr.Button, {"value": key}, size="sm", min_width=0, elem_id=key.replace(".", "-"))
                for key in EXAMPLES
            )
        with localizer.build(gr.Accordion, {"label": "settings"}, open=False, elem_classes="gb-fold gb-settings"):
            parts |= _settings(localizer, parts["sampling"])
    return parts


def _button(localizer: Localizer, name: str) -> gr.Button:
    return localizer.build(
        gr.Button,
        {"value": name},
        variant="primary" if name in ("generate", "stop") else "secondary",
        size="md",
        elem_id=name.replace("_", "-"),
        min_width=0,
        interactive=name not in ("stop", "full_speed"),
    )


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


def _settings(localizer: Localizer, sampling: dict[str, gr.Slider]) -> dict[str, Any]:
    """The settings other than the temperature; adds the sliders to `sampling`."""
    parts: dict[str, Any] = {"preset": _presets(localizer)}
    sampling |= {name: _slider(localizer, name, limit) for name, limit in LIMITS.items() if name not in sampling}
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
            value=Settings.pace,
            elem_id="pace",
            min_width=110,
        )
    return parts


def _pace_choices(language: Language) -> list[tuple[str, int]]:
    return [(str(pace) if pace else t("pace.full", language), pace) for pace in PACES]


def text(localizer: Localizer) -> dict[str, Any]:
    """The text token by token: its strip, the edit controls, how a token was drawn, and the branches."""
    localizer.sentence("strip.question", kind="question")
    placed(sentence(kind="caption", elem_id="dropped", view="dropped"))
    strip = placed(tokens(elem_id="strip", view="strip"))
    with gr.Row(elem_classes="gb-strip-tools"):
        placed(sentence(kind="caption", elem_id="hint", view="hint"))
        shading = localizer.build(
            gr.Radio,
            {"label": "strip.shading", "choices": _shading_choices},
            value="probability",
            elem_id="shading",
            elem_classes="gb-segments",
            container=False,
        )
    placed(draw(elem_id="draw", view="draw"))
    with gr.Row(elem_classes="gb-steer"):
        edit_buttons = {name: _small_button(localizer, name) for name in ("undo", "redo", "back", "go_on", "clear")}
    box = localizer.build(
        gr.Textbox,
        {"label": "box", "placeholder": "box.placeholder", "info": "box.info"},
        max_length=2000,
        elem_id="box",
    )
    hits = placed(choices(elem_id="hits", view="hits"))
    branches = placed(tree(elem_id="tree", view="tree"))
    with localizer.build(gr.Accordion, {"label": "prompt.ids"}, open=False, elem_id="ids"):
        placed(tokens(elem_id="prompt-strip", ids=True, selectable=False, view="prompt-strip"))
    files = files_menu()
    shown = {"tree": branches, "files": files, "strip": strip, "shading": shading}
    return edit_buttons | shown | {"box": box, "hits": hits}


def _shading_choices(language: Language) -> list[tuple[str, str]]:
    return [(t(f"strip.shading.{kind}", language), kind) for kind in get_args(Shading)]


def _small_button(localizer: Localizer, name: str) -> gr.Button:
    is_enabled = name in ("go_on", "clear")
    return localizer.build(gr.Button, {"value": name}, size="sm", elem_id=name, min_width=0, interactive=is_enabled)


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
    heatmap = placed(chart(elem_id="heatmap", clickable=True, view="heatmap"))
    return {"layer": layer, "head": head, "heatmap": heatmap}


def pipeline(localizer: Localizer) -> dict[str, Any]:
    """The sampling pipeline, stage by stage; collapsed, and computed while it is open."""

    def units(language: Language) -> list[tuple[str, str]]:
        return [(t(f"pipeline.{unit}", language), unit) for unit in get_args(Unit)]

    card = {"open": False, "elem_id": "pipeline", "elem_classes": "gb-card gb-pipeline"}
    with localizer.build(gr.Accordion, {"label": "pipeline"}, **card) as accordion:
        placed(sentence(kind="caption", elem_id="pipeline-lead", view="pipeline-lead"))
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=300):
                placed(table(elem_id="pipeline-stages", view="pipeline-stages"))
                follow = localizer.build(
                    gr.Dropdown,
                    {"label": "pipeline.follow"},
                    choices=[],
                    value=None,
                    allow_custom_value=True,
                    elem_id="pipeline-follow",
                )
                placed(table(elem_id="pipeline-token", view="pipeline-token"))
            with gr.Column(min_width=300):
                unit = localizer.build(
                    gr.Radio,
                    {"label": "pipeline.unit", "choices": units},
                    value="probability",
                    elem_id="pipeline-unit",
                    elem_classes="gb-segments",
                    container=False,
                )
                lines = placed(chart(elem_id="pipeline-lines", clickable=True, view="pipeline-lines"))
        chart_bars = placed(chart(elem_id="pipeline-bars", view="pipeline-bars"))
    return {"pipeline": accordion, "follow": follow, "unit": unit, "lines": lines, "chart_bars": chart_bars}


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
