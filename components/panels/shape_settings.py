"""The valid values of the controls of a configuration, and the configuration that they describe."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.errors import PageError
from gpt import GPTConfig


@dataclass(frozen=True)
class Range:
    """The limits of a slider, both included.

    least: the smallest valid value.
    """

    low: int
    high: int
    step: int
    least: int = 1

    def around(self, value: int) -> dict[str, int]:
        """The limits of a slider that shows this value."""
        return {"minimum": min(self.low, value), "maximum": max(self.high, value)}


RANGES = {
    "n_embd": Range(8, 4096, 8),
    "n_layer": Range(1, 96, 1),
    "n_head": Range(1, 64, 1),
    "block_size": Range(8, 8192, 8),
    "vocab_size": Range(1, 131072, 1),
    "n_ff": Range(0, 16384, 8, least=0),
}
MAX_DROPOUT = 0.99
LABELS = {
    "n_embd": "shapes.n_embd",
    "n_layer": "shapes.n_layer",
    "n_head": "shapes.n_head",
    "block_size": "shapes.block_size",
    "vocab_size": "shapes.vocab_size",
    "n_ff": "shapes.n_ff",
    "dropout": "shapes.dropout",
    "tie_weights": "shapes.tie_weights",
    "bias": "shapes.bias",
    "qkv_bias": "shapes.qkv_bias",
    "rotary": "shapes.rotary",
    "skeleton": "shapes.skeleton",
}
SWITCHES = ("tie_weights", "bias", "qkv_bias", "rotary", "skeleton")


def values_of(config: GPTConfig) -> dict[str, Any]:
    """The control values of a configuration; a feed-forward width of 0 stands for 4 * n_embd."""
    given = {name: getattr(config, name) for name in (*RANGES, "dropout", "tie_weights", "bias")}
    switches = {"qkv_bias": config.has_qkv_bias, "rotary": config.position == "rotary", "skeleton": False}
    return given | switches | {"n_ff": config.n_ff or 0}


def check_value(name: str, value: object) -> float | bool:
    """The checked value of one control. Raises PageError for an invalid one."""
    if name in SWITCHES:
        return bool(value)
    finite = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if name == "dropout":
        if not finite or not 0 <= value <= MAX_DROPOUT:
            raise PageError("shapes.error.dropout", high=MAX_DROPOUT)
        return value
    least = RANGES[name].least
    if not finite or value != int(value) or value < least:
        raise PageError("shapes.error.number", name=PageError(LABELS[name]), low=least)
    return int(value)


def shape_of(given: Mapping[str, Any]) -> GPTConfig:
    """The configuration of the control values. Raises PageError for an invalid combination."""
    checked = {name: check_value(name, given[name]) for name in (*RANGES, "dropout", *SWITCHES)}
    width, heads = checked["n_embd"], checked["n_head"]
    if width % heads:
        widths = [width - width % heads + more for more in (0, heads) if width - width % heads + more]
        divisors = [number for number in range(1, min(width, RANGES["n_embd"].high) + 1) if width % number == 0]
        counts = [*divisors[: bisect(divisors, heads)][-1:], *divisors[bisect(divisors, heads) :][:1]]
        raise PageError("shapes.error.heads", width=width, heads=heads, widths=_one_of(widths), counts=_one_of(counts))
    if checked["rotary"] and width // heads % 2:
        raise PageError("shapes.error.rotary", width=width, heads=heads, size=width // heads)
    return GPTConfig(
        **{name: checked[name] for name in RANGES} | {"n_ff": checked["n_ff"] or None},
        **{name: checked[name] for name in ("dropout", "tie_weights", "bias")},
        qkv_bias=bool(checked["bias"] and checked["qkv_bias"]),
        position="rotary" if checked["rotary"] else "learned",
    )


def _one_of(numbers: Sequence[int]) -> int | PageError:
    """One number, or a choice of two as an error message."""
    return numbers[0] if len(numbers) == 1 else PageError("shapes.either", first=numbers[0], second=numbers[1])
