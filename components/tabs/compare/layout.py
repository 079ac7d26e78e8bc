"""Layout of the Compare tab."""

from __future__ import annotations

from typing import Any

import gradio as gr

from components.frame import model_choices
from components.localized import Localizer
from components.state.settings import LIMITS
from components.tabs.compare.components import (
    COLUMN_SETTINGS,
    PRESETS,
    SIDES,
    BeamState,
    Column,
    CompareState,
)
from components.tabs.compare.handlers.beam_search import RANGES
from components.tabs.compare.handlers.columns import MAX_LENGTH
from components.widgets.beams import beams
from components.widgets.chart import chart
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.tokens import tokens
from components.widgets.widget import placed


def prompt(localizer: Localizer) -> gr.Textbox:
    """The prompt of both parts."""
    with gr.Column(elem_classes="gb-card"):
        localizer.sentence("compare.question", kind="question")
        localizer.sentence("compare.says", kind="caption")
        return localizer.build(gr.Textbox, {"label": "prompt"}, lines=2, max_lines=6, elem_id="compare-prompt")


def columns(localizer: Localizer, model: str) -> dict[str, Any]:
    """Two columns side by side. model: the initial model of both."""
    with gr.Column(elem_classes="gb-card"):
        localizer.sentence("compare.preset", kind="caption")
        with gr.Row(elem_classes="gb-examples"):
            presets = {
                name: localizer.build(
                    gr.Button, {"value": f"compare.preset.{name}"}, size="sm", min_width=0, elem_id=f"compare-{name}"
                )
                for name in PRESETS
            }
        right_prompt = localizer.build(
            gr.Textbox,
            {"label": "compare.right_prompt", "info": "compare.right_prompt.info"},
            lines=1,
            max_lines=6,
            elem_id="compare-right-prompt",
        )
        with gr.Row(elem_classes="gb-columns"):
            controls = [_controls(localizer, model, side) for side in range(len(SIDES))]
        with gr.Row(elem_classes="gb-compare-run"):
            length = localizer.build(
                gr.Slider,
                {"label": "length", "info": "length.info"},
                minimum=1,
                maximum=MAX_LENGTH,
                step=1,
                value=CompareState.length,
                elem_id="compare-length",
            )
            with gr.Row(elem_classes="gb-buttons gb-short"):
                generate = _button(localizer, "compare.generate", "generate", variant="primary")
                stop = _button(localizer, "stop", "stop", interactive=False)
        placed(sentence(kind="notice", elem_id="compare-notice", view="compare-notice"))
        with gr.Row(elem_classes="gb-columns gb-compare-strips"):
            strips = [_strip(localizer, side) for side in SIDES]
        localizer.sentence("compare.parting.question", kind="question")
        placed(sentence(kind="lead", elem_id="compare-parting", view="compare-parting"))
    with gr.Column(elem_classes="gb-card"):
        localizer.sentence("compare.divergence.question", kind="question")
        divergence = placed(chart(elem_id="compare-divergence", clickable=True, view="compare-divergence"))
        localizer.sentence("compare.bars.question", kind="question")
        with gr.Row(elem_classes="gb-columns"):
            for side in SIDES:
                with gr.Column(min_width=280):
                    _name(localizer, side, "bars")
                    placed(chart(elem_id=f"compare-{side}-bars", view=f"compare-{side}-bars"))
    both = tuple(Column(**parts, strip=strip) for parts, strip in zip(controls, strips, strict=True))
    return {
        "columns": both,
        "right_prompt": right_prompt,
        "presets": presets,
        "length": length,
        "generate": generate,
        "stop": stop,
        "divergence": divergence,
    }


def _controls(localizer: Localizer, model: str, side: int) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    opening, name_of_side = CompareState().columns[side], SIDES[side]
    with gr.Column(min_width=280, elem_classes="gb-compare-side"):
        parts["model"] = localizer.build(
            gr.Dropdown,
            {"label": f"compare.{name_of_side}"},
            choices=model_choices("en"),
            value=model,
            allow_custom_value=True,
            elem_id=f"compare-{name_of_side}-model",
        )
        with gr.Row(elem_classes="gb-compare-settings"):
            for name in COLUMN_SETTINGS:
                limit = LIMITS[name]
                parts[name] = localizer.build(
                    gr.Slider,
                    {"label": name},
                    minimum=limit.low,
                    maximum=limit.high,
                    step=limit.step,
                    value=getattr(opening, name),
                    min_width=120,
                    elem_id=f"compare-{name_of_side}-{name.replace('_', '-')}",
                )
            parts["seed"] = localizer.build(
                gr.Textbox,
                {"label": "seed", "placeholder": "seed.placeholder"},
                value=opening.seed,
                max_length=18,
                min_width=120,
                elem_id=f"compare-{name_of_side}-seed",
            )
    return parts


def _strip(localizer: Localizer, side: str) -> gr.HTML:
    with gr.Column(min_width=280):
        _name(localizer, side, "strip")
        strip = placed(tokens(elem_id=f"compare-{side}-strip", view=f"compare-{side}-strip"))
        placed(sentence(kind="status", elem_id=f"compare-{side}-status", view=f"compare-{side}-status"))
    return strip


def _name(localizer: Localizer, side: str, part: str) -> None:
    """The name of a side, for narrow screens where the columns are stacked."""
    localizer.sentence(f"compare.{side}", kind="caption", elem_id=f"compare-{side}-{part}-name")


def _button(localizer: Localizer, key: str, name: str, **options: Any) -> gr.Button:
    return localizer.build(gr.Button, {"value": key}, size="md", min_width=0, elem_id=f"compare-{name}", **options)


def beam_search(localizer: Localizer) -> dict[str, Any]:
    """The tree of a beam search and the finished texts."""
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card"):
        localizer.sentence("beams.question", kind="question")
        localizer.sentence("beams.lead", kind="caption")
        with gr.Row(elem_classes="gb-compare-run"):
            parts["width"] = _slider(localizer, "width", 1, BeamState.width)
            parts["penalty"] = _slider(localizer, "penalty", 0.1, BeamState.penalty)
            parts["max_depth"] = _slider(localizer, "length", 1, BeamState.length)
            with gr.Row(elem_classes="gb-buttons gb-short"):
                parts["search"] = _beam_button(localizer, "beams.search", "search", variant="primary")
                parts["stop_search"] = _beam_button(localizer, "stop", "stop", interactive=False)
        placed(sentence(kind="notice", elem_id="beams-notice", view="beams-notice"))
        parts["tree"] = placed(beams(elem_id="beams-tree", view="beams-tree"))
        placed(sentence(kind="lead", elem_id="beams-says", view="beams-says"))
        placed(sentence(kind="status", elem_id="beams-status", view="beams-status"))
        with gr.Row(elem_classes="gb-compare-chosen"):
            placed(sentence(kind="caption", elem_id="beams-chosen", view="beams-chosen"))
            parts["adopt"] = _beam_button(localizer, "beams.adopt", "adopt", interactive=False)
    with gr.Column(elem_classes="gb-card"):
        localizer.sentence("beams.table.question", kind="question")
        placed(table(elem_id="beams-table", view="beams-table"))
    return parts


def _slider(localizer: Localizer, name: str, step: float, value: float) -> gr.Slider:
    low, high = RANGES[name]
    return localizer.build(
        gr.Slider,
        {"label": f"beams.{name}", "info": f"beams.{name}.info"},
        minimum=low,
        maximum=high,
        step=step,
        value=value,
        min_width=180,
        elem_id=f"beams-{name}",
    )


def _beam_button(localizer: Localizer, key: str, name: str, **options: Any) -> gr.Button:
    return localizer.build(gr.Button, {"value": key}, size="md", min_width=0, elem_id=f"beams-{name}", **options)
