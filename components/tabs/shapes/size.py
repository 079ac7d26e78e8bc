"""The configuration in the Shapes tab, and the size of a model with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from components import kit
from components.errors import PageError
from components.i18n import t
from components.panels import shape_settings as controls
from components.parts import Part
from components.state.session import Session
from components.widgets.simple import table
from gpt import PRESETS, GPTConfig
from gpt.experiments.random_models import memory_bytes
from gpt.experiments.shapes import UNTIED_124M, flops_per_token
from gpt.models.sources import HUB_MODELS

PICKED, OWN, UNTIED = "picked", "own", "untied"  # presets in addition to PRESETS
SHAPES = {UNTIED: UNTIED_124M, **PRESETS}


@dataclass(frozen=True)
class Shape:
    """A configuration, with or without its blocks."""

    config: GPTConfig
    skeleton: bool = False

    @property
    def memory(self) -> int:
        """Memory that the model needs, in bytes."""
        return memory_bytes(self.config, skeleton=self.skeleton)


@dataclass(frozen=True)
class Choice:
    """base: the configuration that the controls were last set to. shape: the last valid configuration. problem: why the
    current values are invalid, or None.
    """

    base: GPTConfig
    values: Mapping[str, Any]
    shape: Shape
    problem: PageError | None = None

    @classmethod
    def of(cls, config: GPTConfig, skeleton: bool = False) -> Choice:
        return cls(config, controls.values_of(config) | {"skeleton": skeleton}, Shape(config, skeleton))

    def moved(self, name: str, value: object) -> Choice:
        """Return the choice after one control has changed. Raises PageError for an invalid value."""
        values = {**self.values, name: controls.check_value(name, value)}
        if name == "bias":
            values["qkv_bias"] = values["bias"]
        try:
            shape = Shape(controls.shape_of(values, self.base), values["skeleton"])
        except PageError as problem:
            return replace(self, values=values, problem=problem)
        return replace(self, values=values, shape=shape, problem=None)

    @property
    def preset(self) -> str:
        if self.problem is not None or self.shape.skeleton:
            return OWN
        return next((name for name, config in SHAPES.items() if config == self.shape.config), OWN)


tab = kit.Tab("shapes")


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
    named = [(HUB_MODELS[name].title if name in HUB_MODELS else name, name) for name in PRESETS]
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


def control(name: str) -> Part:
    """Return the control of one value. A slider's range includes the configuration that the controls were set to."""

    def value(s: Any) -> Any:
        return choice_of(s).values[name]

    def limit(s: Any, side: int) -> int:
        return controls.RANGES[name].around(controls.values_of(choice_of(s).base)[name])[side]

    of, label = f"shape-{name.replace('_', '-')}", f"shapes.{name}"
    options: dict[str, Any] = {"info": f"{label}.info", "value": value, "on": partial(set_value, name)}
    if name in controls.SWITCHES:
        return kit.check_box(of, label, **options)
    if name == "dropout":
        return kit.slider(of, label, low=0, high=controls.MAX_DROPOUT, step=0.01, **options)
    options |= {"low": partial(limit, side=0), "high": partial(limit, side=1), "step": controls.RANGES[name].step}
    return kit.slider(of, label, typed_step=1, **options)


def cost_sentence(config: GPTConfig, skeleton: bool) -> str:
    last = config.block_size - 1
    first, end = (flops_per_token(config, position, skeleton=skeleton) for position in (0, last))
    counts = {"first": sum(first), "end": sum(end), "matrices": end[0], "attention": end[1]}
    return t("shapes.cost", position=f"{last:,}", **{name: operations(n) for name, n in counts.items()})


def operations(n: int) -> str:
    """Format a number of floating-point operations: 284,812,032 becomes "285 MFLOP"."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if n >= 0.9995 * size:  # would round to 1,000 of the next smaller unit
            return f"{n / size:.3g} {unit}FLOP"
    return f"{n} FLOP"


def settings_section() -> Part:
    names = (*controls.RANGES, "dropout", *controls.SWITCHES)
    first = [control(name) for name in names if name not in controls.OF_LATER_MODELS]
    later = map(control, controls.OF_LATER_MODELS)
    preset = kit.select("shape-preset", "shapes.preset", choices=preset_choices, value=preset_of, on=choose_preset)
    return kit.section(
        kit.row(preset, *first, classes="gb-shape-settings"),
        kit.fold("shape-later", "shapes.later", kit.row(*later, classes="gb-shape-settings")),
        grow=1,
    )


def size_section() -> Part:
    def of_shape(draw: Callable[[GPTConfig, bool], Any]) -> Callable[[Any], Any]:
        return lambda s: draw(choice_of(s).shape.config, choice_of(s).shape.skeleton)

    def rows(draw: Callable[[GPTConfig, bool], Any]) -> Callable[[Any], dict[str, Any]]:
        return lambda s: {"rows": of_shape(draw)(s)}

    return kit.section(
        kit.question("shapes.question"),
        kit.caption("shapes.says"),
        kit.says("shape-headline", of_shape(controls.parameter_count)),
        kit.says("shape-notice", lambda s: choice_of(s).problem, kind="notice"),
        kit.columns(
            kit.column(kit.picture("shape-parts", of_shape(controls.parameter_bars)), min_width=320),
            kit.column(
                table("shape-sizes", draw=rows(controls.size_rows)),
                kit.says("shape-cost", of_shape(cost_sentence), kind="caption"),
                min_width=320,
            ),
        ),
        kit.fold("shape-every-weight", "shapes.weights", table("shape-weights", draw=rows(controls.weight_rows))),
        grow=1,
        classes="gb-size",
    )
