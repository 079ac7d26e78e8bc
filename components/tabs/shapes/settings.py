"""The configuration in the tab: the chosen model's, a preset, or the visitor's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.errors import PageError
from components.i18n import t
from components.panels.shape_settings import check_value, shape_of, values_of
from gpt import PRESETS, GPTConfig
from gpt.experiments.shapes import UNTIED_124M

PICKED, OWN, UNTIED = "picked", "own", "untied"  # presets in addition to PRESETS
SHAPES = {UNTIED: UNTIED_124M, **PRESETS}
TITLES = {
    "gpt2": "GPT-2 small",
    "gpt2-medium": "GPT-2 medium",
    "gpt2-large": "GPT-2 large",
    "gpt2-xl": "GPT-2 XL",
    "distilgpt2": "DistilGPT2",
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
        values: Value of each control.
        shape: The last valid configuration.
        problem: Why the current values are invalid, or None.
    """

    base: GPTConfig
    values: Mapping[str, Any]
    shape: Shape
    problem: PageError | None = None

    @classmethod
    def of(cls, config: GPTConfig, skeleton: bool = False) -> Choice:
        """Set the controls to a configuration."""
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
        """The preset that the controls match."""
        if self.problem is not None or self.shape.skeleton:
            return OWN
        return next((name for name, config in SHAPES.items() if config == self.shape.config), OWN)


def preset_choices() -> list[tuple[str, str]]:
    """Return the (label, key) pair for each configuration."""
    named = [(TITLES.get(name, name), name) for name in PRESETS]
    picked, untied, own = (t(f"shapes.preset.{name}") for name in (PICKED, UNTIED, OWN))
    return [(picked, PICKED), named[0], (untied, UNTIED), *named[1:], (own, OWN)]
