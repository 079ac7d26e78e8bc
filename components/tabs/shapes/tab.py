"""The Shapes tab: how big a GPT of any shape is, counted at once; built with random weights beside a trained one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any

import gradio as gr

from components import text_views as views
from components.errors import localize_error
from components.frame import Frame
from components.i18n import Language, t
from components.legacy import LOOKING, RUNNING, Playground
from components.localized import Words
from components.panels.shape_settings import LABELS, RANGES, SWITCHES, shape_of, values_of
from components.tabs.shapes import building as shape_building
from components.tabs.shapes import views as shape_views
from components.widgets.chart import chart
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.tokens import tokens
from gpt import PRESETS, GPTConfig, get_model
from gpt.experiments.random_models import RandomModels
from gpt.experiments.shapes import UNTIED_124M

Values = dict[Any, Any]


PICKED, OWN, UNTIED = "picked", "own", "untied"  # presets beside those of gpt.config
SHAPES = {UNTIED: UNTIED_124M, **PRESETS}
TITLES = {
    "gpt2": "GPT-2 small",
    "gpt2-medium": "GPT-2 medium",
    "gpt2-large": "GPT-2 large",
    "gpt2-xl": "GPT-2 XL",
    "distilgpt2": "DistilGPT2",
}


@dataclass(frozen=True)
class ShapeLab:
    """The components of the tab, what it shares with the Playground, and where models are made."""

    frame: Frame
    playground: Playground
    models: RandomModels
    session: gr.State
    preset: gr.Dropdown
    n_embd: gr.Slider
    n_layer: gr.Slider
    n_head: gr.Slider
    block_size: gr.Slider
    vocab_size: gr.Slider
    n_ff: gr.Slider
    tie_weights: gr.Checkbox
    bias: gr.Checkbox
    qkv_bias: gr.Checkbox
    rotary: gr.Checkbox
    skeleton: gr.Checkbox
    headline: gr.HTML
    notice: gr.HTML
    parts: gr.HTML
    sizes: gr.HTML
    cost: gr.HTML
    room: gr.HTML
    build: gr.Button
    stop: gr.Button
    status: gr.HTML
    trouble: gr.HTML
    random_strip: gr.HTML
    trained_name: gr.HTML
    trained_strip: gr.HTML
    stages: gr.HTML

    def controls(self) -> set[Any]:
        """Everything that says a shape."""
        names = (*RANGES, *SWITCHES, "preset")
        return {*(getattr(self, name) for name in names), self.frame.language, self.frame.model}

    def numbers(self) -> list[Any]:
        """Everything that follows from a shape."""
        names = ("preset", "headline", "notice", "parts", "sizes", "cost", "room", "build", "trouble")
        return [getattr(self, name) for name in names]

    def results(self) -> list[Any]:
        """Everything that building changes."""
        names = ("status", "trouble", "random_strip", "trained_name", "trained_strip", "stages", "build", "stop")
        return [getattr(self, name) for name in names]


def build_shape_lab(words: Words, frame: Frame, tab: gr.Tab, playground: Playground) -> ShapeLab:
    """Lay the tab out and wire it. It opens with the shape of the page's model, its example beside random weights."""
    config = frame.example.loaded.model.config
    models = RandomModels()
    parts: dict[str, Any] = {"frame": frame, "playground": playground, "models": models}
    parts["session"] = gr.State(None)
    with gr.Row(elem_classes="gb-playground gb-lab"):
        with gr.Column(elem_classes="gb-controls", min_width=280):
            parts |= _controls(words, config)
        with gr.Column(elem_classes="gb-stage", min_width=320):
            parts |= _numbers(words, config)
            parts |= _building(words, config)
    ui = ShapeLab(**{field.name: parts[field.name] for field in fields(ShapeLab)})
    _wire(ui, tab, cache(partial(shape_building.example, models, frame.example)))
    return ui


def _controls(words: Words, config: GPTConfig) -> dict[str, Any]:
    given = values_of(config)
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card gb-settings gb-shape"):
        parts["preset"] = words.build(
            gr.Dropdown,
            {"label": "shapes.preset", "choices": preset_choices},
            value=PICKED,
            elem_id="shape-preset",
        )
        for name, limit in RANGES.items():
            parts[name] = words.build(
                gr.Slider,
                {"label": LABELS[name], "info": f"{LABELS[name]}.info"},
                **limit.around(given[name]),
                step=limit.step,
                value=given[name],
                elem_id=f"shape-{name.replace('_', '-')}",
            )
        for name in SWITCHES:
            parts[name] = words.build(
                gr.Checkbox,
                {"label": LABELS[name], "info": f"{LABELS[name]}.info"},
                value=given[name],
                elem_id=f"shape-{name.replace('_', '-')}",
                container=False,
            )
    return parts


def preset_choices(language: Language) -> list[tuple[str, str]]:
    """(what the picker says, name of the shape)."""
    named = [(title, name) for name, title in TITLES.items()]
    untied = (t("shapes.preset.untied", language), UNTIED)
    return [
        (t("shapes.preset.picked", language), PICKED), *named[:1], untied, *named[1:],
        (t("shapes.preset.own", language), OWN),
    ]  # fmt: skip


def _numbers(words: Words, config: GPTConfig) -> dict[str, Any]:
    with gr.Column(elem_classes="gb-card gb-size"):
        words.sentence("shapes.question", kind="question")
        words.sentence("shapes.says", kind="caption")
        headline = sentence(shape_views.headline(config, False, "en"), kind="lead", elem_id="shape-headline")
        notice = sentence(kind="notice", elem_id="shape-notice")
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=280):
                parts = chart(shape_views.parts(config, False, "en"), elem_id="shape-parts")
            with gr.Column(min_width=280):
                sizes = table(shape_views.sizes(config, False, "en"), elem_id="shape-sizes")
                cost = sentence(shape_views.cost(config, False, "en"), kind="caption", elem_id="shape-cost")
    return {"headline": headline, "notice": notice, "parts": parts, "sizes": sizes, "cost": cost}


def _building(words: Words, config: GPTConfig) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card gb-built"):
        words.sentence("shapes.build.question", kind="question")
        words.sentence("shapes.build.says", kind="caption")
        with gr.Row(elem_classes="gb-buttons gb-short"):
            parts["build"] = words.build(
                gr.Button, {"value": "shapes.build"}, variant="primary", size="md", elem_id="shape-build", min_width=0
            )
            parts["stop"] = words.build(
                gr.Button, {"value": "stop"}, size="md", elem_id="shape-stop", interactive=False, min_width=0
            )
        parts["room"] = sentence(shape_views.room(config, False, "en"), kind="caption", elem_id="shape-room")
        parts["trouble"] = sentence(kind="notice", elem_id="shape-trouble")
        parts["status"] = sentence(shape_views.status(None, "en"), kind="status", elem_id="shape-status")
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=280):
                words.sentence("shapes.untrained", kind="question")
                parts["random_strip"] = words.build(tokens, {"labels": strip_words}, elem_id="shape-random")
            with gr.Column(min_width=280):
                name = shape_views.trained("", "en")
                parts["trained_name"] = sentence(name, kind="question", elem_id="shape-trained-name")
                parts["trained_strip"] = words.build(tokens, {"labels": strip_words}, elem_id="shape-trained")
        words.sentence("shapes.stages.question", kind="question")
        parts["stages"] = chart(elem_id="shape-stages")
    return parts


def strip_words(language: Language) -> dict[str, str]:
    """The words of both strips."""
    return views.strip_words(language, t("shapes.build.empty", language))


def read_controls(ui: ShapeLab, values: Values) -> dict[str, Any]:
    """The controls' values by name."""
    return {name: values[getattr(ui, name)] for name in (*RANGES, *SWITCHES)}


def show(ui: ShapeLab, values: Values) -> Values:
    """Every number again after a control moved; of a wrong combination, why it is wrong, and all else stays."""
    return _show(ui, read_controls(ui, values), values[ui.frame.language])


def _show(ui: ShapeLab, given: dict[str, Any], language: Language, preset: str | None = None) -> Values:
    try:
        config = shape_of(given)
    except ValueError as problem:
        return {
            ui.notice: localize_error(problem, language),
            ui.trouble: "",
            ui.build: gr.update(interactive=False),
            ui.preset: OWN,
        }
    bare = bool(given["skeleton"])
    preset = preset or next((name for name, shape in SHAPES.items() if shape == config and not bare), OWN)
    return {
        ui.preset: preset,
        ui.headline: shape_views.headline(config, bare, language),
        ui.notice: "",
        ui.trouble: "",
        ui.parts: shape_views.parts(config, bare, language),
        ui.sizes: shape_views.sizes(config, bare, language),
        ui.cost: shape_views.cost(config, bare, language),
        ui.room: shape_views.room(config, bare, language),
        ui.build: gr.update(interactive=shape_views.fits(config, bare)),
    }


def choose(ui: ShapeLab, values: Values) -> Values:
    """A preset: its values in the controls, and every number of it."""
    name = values[ui.preset]
    if name not in SHAPES and name != PICKED:
        return gr.skip()
    config = SHAPES[name] if name in SHAPES else get_model(values[ui.frame.model]).model.config
    given = values_of(config)
    if read_controls(ui, values) == given:  # gradio says it again when the list is left: what is typed then must stay
        return gr.skip()
    update: Values = {getattr(ui, key): given[key] for key in SWITCHES}
    for key, limit in RANGES.items():
        update[getattr(ui, key)] = gr.update(value=given[key], **limit.around(given[key]))
    return update | _show(ui, given, values[ui.frame.language], name)


def follow(ui: ShapeLab, values: Values) -> Values:
    """The shape of the model that was picked since the tab was last open, where that is what it shows."""
    if values[ui.preset] != PICKED:
        return gr.skip()
    shown, given = read_controls(ui, values), values_of(get_model(values[ui.frame.model]).model.config)
    return choose(ui, values) if shown | {"skeleton": False} != given else gr.skip()


def open_first(ui: ShapeLab, example: Callable[[], shape_building.Built | None], values: Values) -> Values:
    """The example of the page's model beside random weights, unless something was built already."""
    built, language = example(), values[ui.frame.language]
    if built is None or values[ui.session] is not None:
        return gr.skip()
    labels = strip_words(language)
    return {
        **_told(ui, built.facts, language),
        ui.session: built.facts,
        ui.random_strip: gr.update(value=built.random_strip, labels=labels),
        ui.trained_strip: gr.update(value=built.trained_strip, labels=labels),
    }


def _told(ui: ShapeLab, facts: shape_views.Facts | None, language: Language) -> Values:
    return {
        ui.status: shape_views.status(facts, language),
        ui.trained_name: shape_views.trained(facts.model if facts else "", language),
        ui.stages: shape_views.stages(facts, language),
    }


def retell(ui: ShapeLab, values: Values) -> Values:
    """Every sentence again, in the language chosen just now."""
    language, facts = values[ui.frame.language], values[ui.session]
    update = {key: value for key, value in show(ui, values).items() if key is not ui.preset}
    return update | _told(ui, facts, language)


def _wire(ui: ShapeLab, tab: gr.Tab, example: Callable[[], shape_building.Built | None]) -> None:
    def handler(function: Callable[..., Any]) -> Callable[..., Any]:
        return partial(function, ui)

    opened = [ui.session, ui.status, ui.random_strip, ui.trained_name, ui.trained_strip, ui.stages]
    tab.select(partial(open_first, ui, example), {ui.session, ui.frame.language}, opened, **LOOKING)

    latest = {"trigger_mode": "always_last", **LOOKING}
    controls = [getattr(ui, name) for name in (*RANGES, *SWITCHES)]
    gr.on([control.input for control in controls], handler(show), ui.controls(), ui.numbers(), **latest)
    for event, chosen in ((ui.preset.input, choose), (tab.select, follow)):
        event(handler(chosen), ui.controls(), [*controls, *ui.numbers()], **latest)
    everything = ui.controls() | ui.playground.inputs() | {ui.session}
    told = [*ui.numbers(), ui.status, ui.trained_name, ui.stages]
    ui.frame.language.change(handler(retell), everything, told, **LOOKING)

    run = ui.build.click(handler(shape_building.compare), everything, [*ui.results(), ui.session], **RUNNING)
    for ended in (run.then, run.failure):
        ended(handler(shape_building.finish), everything, ui.results(), **LOOKING)
    ui.stop.click(None, None, None, cancels=run, api_visibility="private")
