"""Layout of the Change tab."""

from __future__ import annotations

from typing import Any

import gradio as gr

from components.i18n import Language, t
from components.labels import ACTIVATIONS
from components.localized import Localizer
from components.tabs.change.components import PATCHED, PROMPT_PAIRS
from components.tabs.change.experiments import EXPERIMENTS
from components.widgets.chart import chart
from components.widgets.predictions import predictions
from components.widgets.sentence import sentence
from components.widgets.switches import switches
from components.widgets.tokens import tokens
from components.widgets.widget import placed


def editing_card(localizer: Localizer) -> dict[str, Any]:
    """The switches and the other edits."""
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            localizer.sentence("change.question", kind="question")
            parts["reset"] = _button(localizer, "change.reset", "change-reset")
        placed(sentence(kind="lead", elem_id="change-lead", view="change-lead"))
        placed(sentence(kind="notice", elem_id="change-notice", view="change-notice"))
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=320, scale=3):
                parts["switches"] = placed(switches(elem_id="change-switches", view="change-switches"))
            with gr.Column(min_width=280, scale=2, elem_classes="gb-change-side"):
                parts["activation"] = localizer.build(
                    gr.Radio,
                    {"label": "change.activation"},
                    choices=[(title, name) for name, title in ACTIVATIONS.items()],
                    value="gelu_tanh",
                    elem_id="change-activation",
                    elem_classes="gb-segments",
                )
                parts["positions"] = localizer.build(
                    gr.Checkbox,
                    {"label": "change.positions", "info": "change.positions.info"},
                    elem_id="change-positions",
                    container=False,
                )
                localizer.sentence("change.try", kind="caption")
                with gr.Row(elem_classes="gb-examples"):
                    parts["costliest"] = _button(localizer, "change.try.costliest", "change-try-costliest")
                    parts["experiments"] = tuple(
                        _button(localizer, f"change.try.{name}", f"change-try-{name.replace('_', '-')}")
                        for name in EXPERIMENTS
                    )
                    parts["costs_stop"] = _button(localizer, "change.stop", "change-costs-stop", visible=False)
                placed(sentence(kind="status", elem_id="change-status", view="change-status"))
    return parts


def texts_card(localizer: Localizer) -> dict[str, Any]:
    """Both texts side by side, and the program."""
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            localizer.sentence("change.texts.question", kind="question")
            parts["both"] = _button(localizer, "change.both", "change-both", variant="primary")
            parts["stop"] = _button(localizer, "change.stop", "change-stop", interactive=False)
        with gr.Row(elem_classes="gb-change-stale"):
            placed(sentence(kind="caption", elem_id="change-stale", view="change-stale"))
            parts["again"] = _button(localizer, "change.again", "change-again", visible=False)
        with gr.Row(elem_classes="gb-columns"):
            for side in ("original", "edited"):
                with gr.Column(min_width=300):
                    localizer.sentence(f"change.{side}", kind="caption")
                    name = f"change-{side}"
                    parts[side] = placed(tokens(elem_id=name, selectable=side == "original", view=name))
        placed(sentence(kind="lead", elem_id="change-parted", view="change-parted"))
        placed(sentence(kind="caption", elem_id="change-own", view="change-own"))
        localizer.sentence("change.hint", kind="caption")
        with localizer.build(gr.Accordion, {"label": "change.python"}, open=False, elem_id="change-python"):
            parts["code"] = localizer.build(
                gr.Textbox,
                {"label": "change.python.label"},
                lines=12,
                max_lines=30,
                interactive=False,
                buttons=["copy"],
                elem_id="change-code",
            )
    return parts


def effect_column(localizer: Localizer) -> dict[str, Any]:
    """The next token before and after the edits; it stays in view beside the switches."""
    with gr.Column(elem_classes="gb-card gb-change-effect", min_width=280, scale=2):
        placed(predictions(elem_id="change-bars", view="change-bars", selectable=False))
        localizer.sentence("change.bars.legend", kind="caption")
        placed(sentence(kind="lead", elem_id="change-says", view="change-says"))
        placed(sentence(kind="caption", elem_id="change-bars-note", view="change-bars-note"))
    return {}


def divergence_card(localizer: Localizer) -> dict[str, Any]:
    """How far the predictions are apart at each token."""
    with gr.Column(elem_classes="gb-card"):
        localizer.sentence("change.divergence.question", kind="question")
        picture = placed(chart(elem_id="change-divergence", clickable=True, view="change-divergence"))
    return {"divergence": picture}


def patching_card(localizer: Localizer) -> dict[str, Any]:
    """Two prompts, their answers, and the map."""
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card"):
        localizer.sentence("change.patch.question", kind="question")
        localizer.sentence("change.patch.says", kind="caption")
        with gr.Row(elem_classes="gb-examples"):
            parts["examples"] = tuple(
                _button(localizer, f"change.patch.example.{name}", f"change-patch-{name}") for name in PROMPT_PAIRS
            )
        with gr.Row(elem_classes="gb-columns"):
            for place, name in enumerate(("clean", "corrupted")):
                parts[name] = localizer.build(
                    gr.Textbox,
                    {"label": f"change.patch.{name}"},
                    value=PROMPT_PAIRS["names"][place],
                    elem_id=f"change-{name}",
                    max_lines=3,
                )
        with gr.Row(elem_classes="gb-columns gb-change-ask"):
            for name in ("answer", "other"):
                parts[name] = localizer.build(
                    gr.Dropdown,
                    {"label": f"change.patch.{name}", "info": "change.patch.found"},
                    choices=[],
                    value=None,
                    allow_custom_value=True,
                    elem_id=f"change-{name}",
                )
        with gr.Row(elem_classes="gb-change-run"):
            parts["patched"] = localizer.build(
                gr.Radio,
                {"label": "change.patch.name", "choices": _patch_choices},
                value=PATCHED[0],
                elem_id="change-name",
                elem_classes="gb-segments",
                container=False,
            )
            parts["measure"] = _button(localizer, "change.patch.measure", "change-measure", variant="primary")
            parts["patch_stop"] = _button(localizer, "change.stop", "change-patch-stop", interactive=False)
        placed(sentence(kind="status", elem_id="change-patch-status", view="change-patch-status"))
        placed(sentence(kind="notice", elem_id="change-trouble", view="change-trouble"))
        parts["map"] = placed(chart(elem_id="change-map", clickable=True, view="change-map"))
        placed(sentence(kind="lead", elem_id="change-cell", view="change-cell"))
        parts["keep"] = _button(localizer, "change.patch.keep", "change-keep", visible=False)
    return parts


def _patch_choices(language: Language) -> list[tuple[str, str]]:
    return [(t(f"change.patch.{name}", language), name) for name in PATCHED]


def _button(localizer: Localizer, key: str, elem_id: str, **options: Any) -> gr.Button:
    return localizer.build(gr.Button, {"value": key}, elem_id=elem_id, min_width=0, **{"size": "sm", **options})
