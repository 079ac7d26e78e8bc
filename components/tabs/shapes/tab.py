"""The Shapes tab: the size of any GPT configuration, and a model with random weights beside a trained one."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from components.events import Events, clamp_js, clamp_slider_js
from components.i18n import t
from components.localized import Localizer
from components.panels.shape_settings import LABELS, MAX_DROPOUT, OF_LATER_MODELS, RANGES, SWITCHES, values_of
from components.render import Control
from components.state.session import Snapshot
from components.tabs.shapes import handlers
from components.tabs.shapes.components import ShapesComponents, ShapesState, choice_of, preset_of
from components.tabs.shapes.settings import PICKED, preset_choices
from components.tabs.shapes.views import VIEWS, fits
from components.text_views import strip_labels
from components.widgets.chart import chart
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.tokens import tokens
from components.widgets.widget import placed
from gpt import Generation, GPTConfig
from gpt.experiments.random_models import RandomModels

NAME = "shapes"
INITIAL_MAX = 2**20  # the initial maximum of a slider, see `slider_ends`


def build_shapes(localizer: Localizer, events: Events, example: Generation) -> None:
    """Build and wire the tab. It starts with the configuration of the example's model, and the example beside random
    weights."""
    with gr.Row(elem_classes="gb-playground gb-lab"):
        with gr.Column(elem_classes="gb-controls", min_width=280):
            parts = _settings(localizer, example.loaded.model.config)
        with gr.Column(elem_classes="gb-stage", min_width=320):
            _size(localizer)
            build, stop = _building(localizer)
    ui = ShapesComponents(**parts, build=build, stop=stop)
    models = RandomModels()
    events.renderer.add(NAME, VIEWS, handlers.PICKED_MODEL, controls=_controls(ui))
    events.renderer.add(NAME, analysis=handlers.example_analysis(models, example))
    ends = {name: partial(slider_ends, name) for name in ui.sliders}
    events.renderer.add("", controls=[Control(ui.sliders[name], of, of) for name, of in ends.items()])
    _wire(ui, events, models)


def _settings(localizer: Localizer, config: GPTConfig) -> dict[str, Any]:
    given = values_of(config)

    def build(cls: Any, name: str, **options: Any) -> Any:
        texts = {"label": LABELS[name], "info": f"{LABELS[name]}.info"}
        return localizer.build(cls, texts, value=given[name], elem_id=elem_id(name), **options)

    def slider(name: str) -> Any:
        limit = RANGES[name]
        return build(gr.Slider, name, minimum=limit.least, maximum=INITIAL_MAX, step=limit.step)

    def switch(name: str) -> Any:
        return build(gr.Checkbox, name, container=False)

    with gr.Column(elem_classes="gb-card gb-settings gb-shape"):
        preset = localizer.build(
            gr.Dropdown,
            {"label": "shapes.preset", "choices": preset_choices},
            value=PICKED,
            elem_id="shape-preset",
        )
        sliders = {name: slider(name) for name in RANGES if name not in OF_LATER_MODELS}
        dropout = build(gr.Slider, "dropout", minimum=0, maximum=MAX_DROPOUT, step=0.01)
        switches = {name: switch(name) for name in SWITCHES if name not in OF_LATER_MODELS}
        with localizer.build(gr.Accordion, {"label": "shapes.later"}, open=False, elem_id="shape-later"):
            sliders |= {name: slider(name) for name in RANGES if name in OF_LATER_MODELS}
            switches |= {name: switch(name) for name in SWITCHES if name in OF_LATER_MODELS}
    return {"preset": preset, "sliders": sliders, "dropout": dropout, "switches": switches}


def elem_id(name: str) -> str:
    """The element id of a setting's control."""
    return f"shape-{name.replace('_', '-')}"


def _size(localizer: Localizer) -> None:
    with gr.Column(elem_classes="gb-card gb-size"):
        localizer.sentence("shapes.question", kind="question")
        localizer.sentence("shapes.says", kind="caption")
        placed(sentence(kind="lead", elem_id="shape-headline", view="shape-headline"))
        placed(sentence(kind="notice", elem_id="shape-notice", view="shape-notice"))
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=280):
                placed(chart(elem_id="shape-parts", view="shape-parts"))
            with gr.Column(min_width=280):
                placed(table(elem_id="shape-sizes", view="shape-sizes"))
                placed(sentence(kind="caption", elem_id="shape-cost", view="shape-cost"))
        with localizer.build(gr.Accordion, {"label": "shapes.weights"}, open=False, elem_id="shape-every-weight"):
            placed(table(elem_id="shape-weights", view="shape-weights"))


def _building(localizer: Localizer) -> tuple[gr.Button, gr.Button]:
    with gr.Column(elem_classes="gb-card gb-built"):
        localizer.sentence("shapes.build.question", kind="question")
        localizer.sentence("shapes.build.says", kind="caption")
        with gr.Row(elem_classes="gb-buttons gb-short"):
            build = localizer.build(
                gr.Button, {"value": "shapes.build"}, variant="primary", size="md", elem_id="shape-build", min_width=0
            )
            stop = localizer.build(
                gr.Button, {"value": "stop"}, size="md", elem_id="shape-stop", interactive=False, min_width=0
            )
        placed(sentence(kind="caption", elem_id="shape-room", view="shape-room"))
        placed(sentence(kind="notice", elem_id="shape-trouble", view="shape-trouble"))
        placed(sentence(kind="status", elem_id="shape-status", view="shape-status"))
        labels = strip_labels("en", t("shapes.build.empty", "en"))
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=280):
                localizer.sentence("shapes.untrained", kind="question")
                placed(tokens(elem_id="shape-random", labels=labels, view="shape-random"))
            with gr.Column(min_width=280):
                placed(sentence(kind="question", elem_id="shape-trained-name", view="shape-trained-name"))
                placed(tokens(elem_id="shape-trained", labels=labels, view="shape-trained"))
        localizer.sentence("shapes.stages.question", kind="question")
        placed(chart(elem_id="shape-stages", view="shape-stages"))
    return build, stop


def _controls(ui: ShapesComponents) -> list[Control]:
    """Components that the server changes."""
    controls = [
        Control(ui.preset, preset_of, lambda s: {"value": preset_of(s)}),
        Control(ui.build, can_build, lambda s: {"interactive": can_build(s)}),
        Control(ui.stop, is_building, lambda s: {"interactive": is_building(s)}),
    ]
    for name, control in {**ui.sliders, "dropout": ui.dropout, **ui.switches}.items():
        value = partial(control_value, name)
        controls.append(Control(control, value, lambda s, value=value: {"value": value(s)}))
    return controls


def slider_ends(name: str, s: Snapshot) -> dict[str, int]:
    """The limits of a slider, which include the configuration that the controls were last set to.

    They are wider in the initial session: gradio rejects a number outside the limits that a slider was built with.
    """
    limit = RANGES[name]
    return (
        limit.around(values_of(choice_of(s).base)[name]) if s.id else {"minimum": limit.least, "maximum": INITIAL_MAX}
    )


def control_value(name: str, s: Snapshot) -> float | bool:
    """The value of a control."""
    return choice_of(s).values[name]


def is_building(s: Snapshot) -> bool:
    return s.state(ShapesState).busy


def can_build(s: Snapshot) -> bool:
    """Whether the configuration can be built and no build is active."""
    choice = choice_of(s)
    return not is_building(s) and choice.problem is None and fits(choice.shape)


def _wire(ui: ShapesComponents, events: Events, models: RandomModels) -> None:
    latest: Any = {"trigger_mode": "always_last"}
    events.on(ui.preset.input, handlers.choose_preset, [ui.preset], **latest)
    for name, slider in ui.sliders.items():
        js = clamp_slider_js(elem_id(name))
        events.on(slider.input, partial(handlers.set_value, name), [slider], js=js, **latest)
    dropout_js = clamp_js(0, MAX_DROPOUT)
    events.on(ui.dropout.input, partial(handlers.set_value, "dropout"), [ui.dropout], js=dropout_js, **latest)
    for name, switch in ui.switches.items():
        events.on(switch.input, partial(handlers.set_value, name), [switch], **latest)
    run = events.on(ui.build.click, partial(handlers.build, models), queue="model")
    events.on(ui.stop.click, handlers.stop, cancels=[run])
