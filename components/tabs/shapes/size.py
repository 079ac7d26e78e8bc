"""The configuration in the Shapes tab, and the size of a model with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from components.errors import PageError
from components.i18n import t
from components.kit import Tab, caption, column, columns, fold, picture, question, row, says, section
from components.panels.shape_settings import (
    MAX_DROPOUT,
    OF_LATER_MODELS,
    RANGES,
    SWITCHES,
    check_value,
    parameter_bars,
    parameter_count,
    shape_of,
    size_rows,
    values_of,
    weight_rows,
)
from components.parts import Part, check_box, select, slider
from components.state.session import Session
from components.widgets.simple import table
from gpt import PRESETS, GPTConfig
from gpt.experiments.random_models import MAX_MEMORY_BYTES, memory_bytes
from gpt.experiments.shapes import UNTIED_124M, flops_per_token

PICKED, OWN, UNTIED = "picked", "own", "untied"  # presets in addition to PRESETS
SHAPES = {UNTIED: UNTIED_124M, **PRESETS}
TITLES = {
    "gpt2": "GPT-2 small",
    "gpt2-medium": "GPT-2 medium",
    "gpt2-large": "GPT-2 large",
    "gpt2-xl": "GPT-2 XL",
    "distilgpt2": "DistilGPT-2",
}  # names of the published presets


@dataclass(frozen=True)
class Shape:
    """A configuration, with or without its blocks."""

    config: GPTConfig
    skeleton: bool = False


@dataclass(frozen=True)
class Choice:
    """The values of the controls.

    Attributes:
        base: The configuration that the controls were last set to.
        shape: The last valid configuration.
        problem: Why the current values are invalid, or None.
    """

    base: GPTConfig
    values: Mapping[str, Any]
    shape: Shape
    problem: PageError | None = None

    @classmethod
    def of(cls, config: GPTConfig, skeleton: bool = False) -> Choice:
        return cls(config, values_of(config) | {"skeleton": skeleton}, Shape(config, skeleton))

    def moved(self, name: str, value: object) -> Choice:
        """Return the choice after one control has changed. Raises PageError for an invalid value."""
        values = {**self.values, name: check_value(name, value)}
        if name == "bias":
            values["qkv_bias"] = values["bias"]
        try:
            shape = Shape(shape_of(values, self.base), values["skeleton"])
        except PageError as problem:
            return replace(self, values=values, problem=problem)
        return replace(self, values=values, shape=shape, problem=None)

    @property
    def preset(self) -> str:
        if self.problem is not None or self.shape.skeleton:
            return OWN
        return next((name for name, config in SHAPES.items() if config == self.shape.config), OWN)


tab = Tab("shapes")


@tab.state
class Chosen:
    """choice: values of the controls; None for the chosen model's configuration."""

    choice: Choice | None = None


def choice_of(s: Any) -> Choice:
    config = GPTConfig() if s.loaded is None else s.loaded.model.config
    return s.state(Chosen).choice or Choice.of(config)


def preset_of(s: Any) -> str:
    choice = s.state(Chosen).choice
    return PICKED if choice is None else choice.preset


def preset_choices(s: Any) -> list[tuple[str, str]]:
    named = [(TITLES.get(name, name), name) for name in PRESETS]
    picked, untied, own = (t(f"shapes.preset.{name}") for name in (PICKED, UNTIED, OWN))
    return [(picked, PICKED), named[0], (untied, UNTIED), *named[1:], (own, OWN)]


def set_shape(session: Session, config: GPTConfig, skeleton: bool = False) -> None:
    session.change(Chosen, choice=Choice.of(config, skeleton))


def choose_preset(session: Session, name: object) -> None:
    if name == PICKED:
        session.change(Chosen, choice=None)
    elif name == OWN:
        session.change(Chosen, choice=choice_of(session))
    elif isinstance(name, str) and name in SHAPES:
        set_shape(session, SHAPES[name])


def set_value(name: str, session: Session, value: object) -> None:
    session.change(Chosen, choice=choice_of(session).moved(name, value))


def cost_sentence(shape: Shape) -> str:
    last = shape.config.block_size - 1
    first, end = (flops_per_token(shape.config, position, skeleton=shape.skeleton) for position in (0, last))
    return t(
        "shapes.cost",
        first=operations(first.total),
        end=operations(end.total),
        position=f"{last:,}",
        matrices=operations(end.matrices),
        attention=operations(end.attention),
    )


def operations(n: int) -> str:
    """Format a number of floating-point operations: 284,812,032 becomes "285 MFLOP"."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if n >= 0.9995 * size:  # would round to 1,000 of the next smaller unit
            return f"{n / size:.3g} {unit}FLOP"
    return f"{n} FLOP"


def fits(shape: Shape) -> bool:
    return memory_bytes(shape.config, skeleton=shape.skeleton) <= MAX_MEMORY_BYTES


def settings_section() -> Part:
    preset = select(
        "shape-preset",
        choices=preset_choices,
        label="shapes.preset",
        value=preset_of,
        on=choose_preset,
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
    controls = {}
    for name, limit in RANGES.items():
        low, high = partial(slider_end, name, 0), partial(slider_end, name, 1)
        controls[name] = slider(_id(name), low=low, high=high, step=limit.step, typed_step=1, **_options(name))
    controls["dropout"] = slider(_id("dropout"), low=0, high=MAX_DROPOUT, step=0.01, **_options("dropout"))
    return controls | {name: check_box(_id(name), **_options(name)) for name in SWITCHES}


def _id(name: str) -> str:
    return f"shape-{name.replace('_', '-')}"


def _options(name: str) -> dict[str, Any]:
    label, value, on = f"shapes.{name}", partial(control_value, name), partial(set_value, name)
    return {"label": label, "info": f"{label}.info", "value": value, "on": on}


def size_section() -> Part:
    return section(
        question("shapes.question"),
        caption("shapes.says"),
        says("shape-headline", lambda s: parameter_count(*_chosen_shape(s))),
        says("shape-notice", lambda s: choice_of(s).problem, kind="notice"),
        columns(
            column(picture("shape-parts", lambda s: parameter_bars(*_chosen_shape(s))), min_width=320),
            column(
                table("shape-sizes", draw=lambda s: {"rows": size_rows(*_chosen_shape(s))}),
                says("shape-cost", lambda s: cost_sentence(choice_of(s).shape), kind="caption"),
                min_width=320,
            ),
        ),
        fold(
            "shape-every-weight",
            "shapes.weights",
            table("shape-weights", draw=lambda s: {"rows": weight_rows(*_chosen_shape(s))}),
        ),
        grow=1,
        classes="gb-size",
    )


def _chosen_shape(s: Any) -> tuple[GPTConfig, bool]:
    shape = choice_of(s).shape
    return shape.config, shape.skeleton


def slider_end(name: str, side: int, s: Any) -> int:
    """Return the lower (0) or upper (1) end of a slider.

    The range always includes the configuration that the controls were last set to.
    """
    return RANGES[name].around(values_of(choice_of(s).base)[name])[side]


def control_value(name: str, s: Any) -> float | bool:
    return choice_of(s).values[name]
