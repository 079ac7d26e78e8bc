"""The Shapes tab: the size of any GPT configuration, and a model with random weights beside a trained one."""

from __future__ import annotations

from functools import partial

from components.cards.card import Card, add_cards
from components.events import Events
from components.panels.shape_settings import LABELS, MAX_DROPOUT, OF_LATER_MODELS, RANGES, SWITCHES, values_of
from components.parts import (
    ControlOptions,
    Part,
    caption,
    check_box,
    column,
    columns,
    fold,
    question,
    row,
    run_buttons,
    section,
    select,
    slider,
)
from components.state.jobs import stop
from components.state.snapshot import Snapshot
from components.tabs.shapes import handlers
from components.tabs.shapes.settings import preset_choices
from components.tabs.shapes.state import ShapesState, choice_of, preset_of
from components.tabs.shapes.views import VIEWS, fits
from components.widgets.chart import chart
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.tokens import tokens
from gpt import Generation
from gpt.experiments.random_models import RandomModels

NAME = "shapes"


def build_shapes(events: Events, example: Generation) -> None:
    """Build and wire the tab. `example`, written by the page's model, is initially shown beside random output."""
    models = RandomModels()
    stage = column(_size(), _building(models), min_width=320)
    card = Card("shapes", columns(_settings(), stage, classes="gb-shapes"), classes="")
    add_cards(events, NAME, [card], VIEWS, handlers.PICKED_MODEL)
    events.renderer.add(NAME, analysis=handlers.example_analysis(models, example))


def _settings() -> Part:
    """Build the controls for a configuration."""
    preset = select(
        "shape-preset",
        lambda s: preset_choices(),
        label="shapes.preset",
        value=preset_of,
        on=handlers.choose_preset,
    )
    first, later = (
        [control for name, control in _controls().items() if (name in OF_LATER_MODELS) == is_later]
        for is_later in (False, True)
    )
    return section(
        row(preset, *first, classes="gb-shape-settings"),
        fold("shape-later", "shapes.later", row(*later, classes="gb-shape-settings")),
        grow=1,
    )


def _controls() -> dict[str, Part]:
    """Return the control for each setting."""
    controls = {}
    for name, limit in RANGES.items():
        low, high = partial(slider_end, name, 0), partial(slider_end, name, 1)
        controls[name] = slider(_id(name), low, high, limit.step, typed_step=1, **_options(name))
    controls["dropout"] = slider(_id("dropout"), 0, MAX_DROPOUT, 0.01, **_options("dropout"))
    return controls | {name: check_box(_id(name), **_options(name)) for name in SWITCHES}


def _id(name: str) -> str:
    return f"shape-{name.replace('_', '-')}"


def _options(name: str) -> ControlOptions:
    label, value, on = LABELS[name], partial(control_value, name), partial(handlers.set_value, name)
    return {"label": label, "info": f"{label}.info", "value": value, "on": on}


def _size() -> Part:
    """Build the section on the size of a model with this configuration."""
    return section(
        question("shapes.question"),
        caption("shapes.says"),
        sentence("shape-headline"),
        sentence("shape-notice", kind="notice"),
        columns(
            column(chart("shape-parts"), min_width=320),
            column(
                table("shape-sizes"),
                sentence("shape-cost", kind="caption"),
                min_width=320,
            ),
        ),
        fold("shape-every-weight", "shapes.weights", table("shape-weights")),
        classes="gb-size",
    )


def _building(models: RandomModels) -> Part:
    """Build the section on a model with random weights and the text it generates."""
    start = partial(handlers.build, models)
    return section(
        question("shapes.build.question"),
        caption("shapes.build.says"),
        run_buttons(
            "shape",
            "shapes.build",
            start,
            partial(stop, ShapesState),
            is_building,
            queue="model",
            able=can_build,
            primary=True,
        ),
        sentence("shape-room", kind="caption"),
        sentence("shape-trouble", kind="notice"),
        sentence("shape-status", kind="status"),
        columns(
            column(question("shapes.untrained"), tokens("shape-random"), min_width=320),
            column(
                sentence("shape-trained-name", kind="question"),
                tokens("shape-trained"),
                min_width=320,
            ),
        ),
        question("shapes.stages.question"),
        chart("shape-stages"),
        classes="gb-built",
    )


def slider_end(name: str, side: int, s: Snapshot) -> int:
    """Return the lower (0) or upper (1) end of a slider.

    The range always includes the configuration that the controls were last set to.
    """
    return RANGES[name].around(values_of(choice_of(s).base)[name])[side]


def control_value(name: str, s: Snapshot) -> float | bool:
    """Return the value of a control."""
    return choice_of(s).values[name]


def is_building(s: Snapshot) -> bool:
    return s.state(ShapesState).busy


def can_build(s: Snapshot) -> bool:
    """Return whether a model with this configuration may be built."""
    choice = choice_of(s)
    return choice.problem is None and fits(choice.shape)
