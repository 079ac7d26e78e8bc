"""Settings and their limits, shared by the page and the API."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from components.errors import PageError
from components.limits import MAX_LENGTH
from gpt import SamplingParams, with_seed
from gpt.errors import Verbatim, out_of_range


@dataclass(frozen=True)
class Limit:
    """One setting's range (both ends inclusive), its slider's step, and its default."""

    low: float
    high: float
    step: float
    default: float
    off: float | None  # the value that disables the setting; None if it is always on
    letter: str  # the setting's name in a link


LIMITS = {
    "temperature": Limit(0.0, 2.0, 0.05, default=0.8, off=None, letter="t"),
    "top_k": Limit(0, 200, 1, default=0, off=0, letter="k"),
    "top_p": Limit(0.01, 1.0, 0.01, default=1.0, off=1.0, letter="p"),
    "min_p": Limit(0.0, 1.0, 0.01, default=0.0, off=0.0, letter="m"),
    "repetition_penalty": Limit(1.0, 2.0, 0.05, default=1.0, off=1.0, letter="r"),
    "repetition_window": Limit(0, 512, 1, default=0, off=0, letter="w"),
    "temperature_last": Limit(0, 1, 1, default=0, off=0, letter="l"),
}
SWITCHES = ("temperature_last",)  # settings that are 0 or 1 in links
PACES = (4, 8, 16, 0)  # tokens per second; 0 means full speed
INTEGERS = {*SWITCHES, "top_k", "repetition_window", "seed", "max_new_tokens"}


def checked_number(name: str, value: object, low: float, high: float = math.inf, *, whole: bool = False) -> float | int:
    """Return the value as a number in [low, high], as an int if `whole` is True and for the names in INTEGERS.

    Raises ValueError if it is text, a bool or NaN, or is out of range.
    """
    whole = whole or name in INTEGERS
    shown: object = value
    if isinstance(value, bool) or not isinstance(value, int | float):
        shown = type(value)
    elif -math.inf < value < math.inf and low <= value <= high and not (whole and value != int(value)):
        return int(value) if whole else float(value)
    elif isinstance(value, int) and abs(value) >= 10**20:  # Python refuses to print very long integers
        shown = Verbatim("> 10²⁰" if value > 0 else "< −10²⁰")
    raise out_of_range(name, shown, f"{low:g}", f"{high:g}" if math.isfinite(high) else None, whole=whole)


def clamped(name: str, value: object) -> object:
    """Clamp a typed number to the range of the setting's slider; return anything else unchanged."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -math.inf < value < math.inf:
        return value
    if name in LIMITS:
        value = min(max(value, LIMITS[name].low), LIMITS[name].high)
    return round(value) if name in INTEGERS else value


def max_new_tokens(value: object) -> int:
    """Return the checked number of new tokens. Raises ValueError for an invalid number."""
    return int(checked_number("max_new_tokens", clamped("max_new_tokens", value), 1))


def sampling_params(*, seed: object = None, **values: object) -> SamplingParams:
    """Return checked sampling parameters; missing and disabled settings have their defaults."""
    checked: dict[str, Any] = {}
    for name, value in values.items():
        number = checked_setting(name, value)
        if number != LIMITS[name].off:
            checked[name] = number
    return params_of(checked | {"seed": None if seed is None else int(checked_number("seed", seed, 0))})


def checked_setting(name: str, value: object) -> float | int:
    """Return a number within the setting's limits; a switch may also be a bool. Raises ValueError for anything else."""
    if name in SWITCHES and isinstance(value, bool):
        return int(value)
    return checked_number(name, value, LIMITS[name].low, LIMITS[name].high)


def params_of(values: dict[str, Any]) -> SamplingParams:
    """Return sampling parameters from numbers, in which switches are 0 or 1. Raises ValueError if one is invalid."""
    return SamplingParams(**{name: value == 1 if name in SWITCHES else value for name, value in values.items()})


@dataclass(frozen=True)
class Settings:
    """The settings next to the prompt. `with_value` keeps every value within its limits."""

    temperature: float = LIMITS["temperature"].default
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    repetition_window: int = 0
    temperature_last: int = 0
    length: int = 100  # maximum number of new tokens
    seed: str = ""  # as typed; "" for a random seed
    pace: int = 8  # tokens per second; 0 for full speed

    def with_value(self, name: str, value: object) -> Settings:
        """Return the settings with another value for one field, clamped to its range. Raises ValueError if invalid."""
        if name == "seed":
            return replace(self, seed=value.strip()[:18] if isinstance(value, str) else "")
        if name == "pace":
            return replace(self, pace=value if value in PACES else self.pace)
        if name == "length":
            value = min(max_new_tokens(value), MAX_LENGTH)
        else:
            value = checked_setting(name, clamped(name, value))
        return replace(self, **{name: value})  # type: ignore[arg-type]

    def sampling(self) -> SamplingParams:
        return sampling_params(**{name: getattr(self, name) for name in LIMITS})

    def typed_seed(self) -> int | None:
        """Return the typed seed, or None if the box is empty. Raises ValueError if it is not an integer."""
        if self.seed and not (self.seed.isascii() and self.seed.isdecimal()):
            raise PageError("error.seed")
        return int(self.seed) if self.seed else None

    def sampling_with_seed(self) -> SamplingParams:
        """Return the sampling parameters, with a random seed if none was typed. Raises the same as `typed_seed`."""
        return with_seed(replace(self.sampling(), seed=self.typed_seed()))


def sampling_values(params: SamplingParams) -> dict[str, Any]:
    """Return the slider values for sampling parameters, with each disabled setting at its `off` value."""
    given = {name: getattr(params, name) for name in LIMITS}
    return {name: LIMITS[name].off if value is None else +value for name, value in given.items()}  # +True is 1
