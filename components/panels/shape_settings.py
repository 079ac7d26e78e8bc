"""Conversion between a configuration and the values of its controls, with validation."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from components.errors import PageError
from components.figures.bars import size_bars
from components.i18n import t
from components.labels import percent
from components.widgets.chart import Drawing
from gpt import GPTConfig
from gpt.errors import GPTError
from gpt.experiments.shapes import NUMBER_BYTES, Part, cache_numbers, count_parameters, parameter_parts, weight_shapes
from gpt.models.memory import format_bytes


@dataclass(frozen=True)
class Range:
    """A slider's limits, both inclusive. least: the smallest valid value."""

    low: int
    high: int
    step: int
    least: int = 1

    def around(self, value: int) -> tuple[int, int]:
        return min(self.low, value), max(self.high, value)


RANGES = {
    "n_embd": Range(8, 4096, 8),
    "n_layer": Range(1, 96, 1),
    "n_head": Range(1, 64, 1),
    "block_size": Range(8, 8192, 8),
    "vocab_size": Range(1, 131072, 1),
    "n_ff": Range(0, 16384, 8, least=0),
    "n_kv_head": Range(0, 64, 1, least=0),
}
LABELS = {name: f"shapes.{name}" for name in RANGES}
MAX_DROPOUT = 0.99
MOST = 10**8  # of anything that is counted; with more, sizes in bytes may not fit into 64 bits
SWITCHES = ("tie_weights", "bias", "qkv_bias", "rotary", "rms", "gated", "skeleton")
OF_LATER_MODELS = ("n_kv_head", "rms", "gated")  # options that GPT-2 lacks; their controls are initially hidden


def values_of(config: GPTConfig) -> dict[str, Any]:
    """Return the control values for a configuration.

    0 stands for a feed-forward width of 4 * n_embd, and for equal numbers of key/value heads and query heads.
    """
    numbers = {name: getattr(config, name) or 0 for name in (*RANGES, "dropout")}
    switches = {name: getattr(config, name) for name in ("tie_weights", "bias", "gated")}
    switches |= {"rotary": config.position == "rotary", "rms": config.norm == "rms", "skeleton": False}
    return numbers | switches | {"qkv_bias": config.has_bias("qkv")}


def check_value(name: str, value: object) -> float | bool:
    """Return one control's checked value. Raises PageError for an invalid value."""
    if name in SWITCHES:
        return bool(value)
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if name == "dropout":
        if not 0 <= number <= MAX_DROPOUT:
            raise PageError("shapes.error.dropout", high=MAX_DROPOUT)
        return number
    least = RANGES[name].least
    if not least <= number <= MOST or number != int(number):
        raise PageError("shapes.error.number", name=PageError(LABELS[name]), low=least, high=f"{MOST:,}")
    return int(number)


def shape_of(given: Mapping[str, Any], base: GPTConfig | None = None) -> GPTConfig:
    """Return the configuration that these control values describe. Raises PageError for an invalid combination.

    base: supplies the options without controls; defaults to GPT-2 small without dropout.
    """
    checked: dict[str, Any] = {name: check_value(name, given[name]) for name in (*RANGES, "dropout", *SWITCHES)}
    base = base or GPTConfig()
    _check_heads(checked, base)
    same_biases = checked["bias"] == base.bias
    try:
        return replace(
            base.with_layers(checked["n_layer"]),
            **{name: checked[name] for name in (*RANGES, "dropout", "tie_weights", "bias", "qkv_bias", "gated")}
            | {name: checked[name] or None for name in ("n_ff", "n_kv_head")},
            proj_bias=base.proj_bias if same_biases else None,
            mlp_bias=base.mlp_bias if same_biases else None,
            position="rotary" if checked["rotary"] else "learned",
            norm="rms" if checked["rms"] else "layer",
        )
    except GPTError as problem:
        raise PageError(f"error.{problem.key}", **problem.values) from None


def _check_heads(checked: Mapping[str, Any], base: GPTConfig) -> None:
    """Raise PageError if the numbers of heads are invalid; the message suggests valid ones."""
    width, heads, kv_heads = checked["n_embd"], checked["n_head"], checked["n_kv_head"]
    if base.head_dim is None and width % heads:
        widths = _one_of([each for each in (width - width % heads, width - width % heads + heads) if each])
        counts = _divisors(width, near=heads)
        raise PageError("shapes.error.heads", width=width, heads=heads, widths=widths, counts=counts)
    if kv_heads and heads % kv_heads:
        counts = _divisors(heads, near=kv_heads)
        raise PageError("shapes.error.kv_heads", heads=heads, kv_heads=kv_heads, counts=counts)
    if base.head_dim is None and base.rotary_share == 1 and checked["rotary"] and width // heads % 2:
        raise PageError("shapes.error.rotary", width=width, heads=heads, size=width // heads)


def _divisors(number: int, *, near: int) -> int | PageError:
    """Name the divisors of a number on both sides of another one."""
    divisors = [each for each in range(1, min(number, RANGES["n_embd"].high) + 1) if number % each == 0]
    at = bisect(divisors, near)
    return _one_of(divisors[max(0, at - 1) : at + 1])


def _one_of(numbers: Sequence[int]) -> int | PageError:
    """Return the number if there is only one, or an error message that offers two."""
    return numbers[0] if len(numbers) == 1 else PageError("shapes.either", first=numbers[0], second=numbers[1])


PARTS: tuple[Part, ...] = get_args(Part)
IN_BLOCKS = ("attention", "feed_forward")


def parameter_count(config: GPTConfig, skeleton: bool) -> str:
    return t("shapes.headline.parameters", n=f"{count_parameters(config, skeleton=skeleton):,}")


def size_rows(config: GPTConfig, skeleton: bool) -> list[list[str]]:
    n_cache = 0 if skeleton else cache_numbers(config)
    numbers = {
        t("shapes.size.weights"): count_parameters(config, skeleton=skeleton),
        t("shapes.size.cache"): n_cache,
        t("shapes.size.context", n=f"{config.block_size:,}"): n_cache * config.block_size,
    }
    rows = [[name, *(format_bytes(n * size) for size in NUMBER_BYTES.values())] for name, n in numbers.items()]
    return [["", *NUMBER_BYTES], *rows]


def weight_rows(config: GPTConfig, skeleton: bool) -> list[list[str]]:
    rows = [[t(f"shapes.weight.{column}") for column in ("name", "shape", "copies", "parameters")]]
    for weight in weight_shapes(config, skeleton=skeleton):
        rows.append([weight.name, str(list(weight.shape)), f"× {weight.copies}", f"{weight.n_parameters:,}"])
    return rows


def parameter_bars(config: GPTConfig, skeleton: bool) -> Drawing:
    """Draw each part's parameters as bars; shared or replaced parts are outlined."""
    counts = parameter_parts(config, skeleton=skeleton)
    whole = parameter_parts(config) | {"head": config.vocab_size * config.n_embd}
    total = sum(counts.values())
    blocks = {part: config.n_layer if part in IN_BLOCKS else 1 for part in PARTS}
    names, labels = [], []
    for part in PARTS:
        name = t(f"shapes.part.{part}")
        names.append(f"{name} × {config.n_layer}" if part in IN_BLOCKS else name)
        if counts[part] or not whole[part]:
            labels.append(f"{counts[part]:,} · {percent(counts[part] / total)}")
        else:
            key = "shapes.part.shared" if part == "head" else "shapes.part.replaced"
            labels.append(t(key, n=f"{whole[part]:,}"))
    ghosts = np.array([0 if counts[part] else whole[part] for part in PARTS])
    filled, segments = (np.array([numbers[part] for part in PARTS]) for numbers in (counts, blocks))
    figure = size_bars(names, filled, labels, ghosts=ghosts, blocks=segments)
    own = total if counts["head"] else total + whole["head"]
    tying = {
        "untied": f"{own:,}",
        "tied": f"{own - whole['head']:,}",
        "shape": f"[{config.vocab_size}, {config.n_embd}]",
    }
    part = max(counts, key=counts.__getitem__)
    largest = {"part": t(f"shapes.part.{part}"), "share": percent(counts[part] / total)}
    return figure, t("shapes.parts.says", **largest, **tying)
