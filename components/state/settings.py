"""What a person may set: one table of limits for the page and the API."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from components.errors import PageError
from gpt import SamplingParams, with_seed
from gpt.errors import GPTError, Verbatim


@dataclass(frozen=True)
class Limit:
    """The range of one setting, both ends included, the step of its slider, and where it starts."""

    low: float
    high: float
    step: float
    default: float


LIMITS = {
    "temperature": Limit(0.0, 2.0, 0.05, 0.8),
    "top_k": Limit(0, 200, 1, 0),
    "top_p": Limit(0.01, 1.0, 0.01, 1.0),
    "min_p": Limit(0.0, 1.0, 0.01, 0.0),
    "repetition_penalty": Limit(1.0, 2.0, 0.05, 1.0),
}
MAX_LENGTH = 1024  # new tokens, whatever the model
PACES = (5, 20, 50, 0)  # tokens a second; 0: as fast as the model writes
WHOLE = ("top_k", "seed", "max_new_tokens", "k", "layer", "head")


def number(name: str, value: object, low: float, high: float = math.inf) -> float | int:
    """The value as a number within low..high; a whole one for the names in WHOLE.

    Raises ValueError with a sentence for anything else: text, a truth value, NaN, out of range.
    """
    whole = name in WHOLE
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _out_of_range(name, type(value), low, high)
    if value in (math.inf, -math.inf) or not low <= value <= high or (whole and value != int(value)):
        if isinstance(value, int) and abs(value) >= 10**20:  # Python does not even write a very long one
            raise _out_of_range(name, Verbatim("> 10²⁰" if value > 0 else "< −10²⁰"), low, high)
        raise _out_of_range(name, value, low, high)
    return int(value) if whole else float(value)


def _out_of_range(name: str, value: object, low: float, high: float) -> GPTError:
    least, most = f"{low:g}", f"{high:g}"
    if math.isfinite(high):
        if name in WHOLE:
            return GPTError("argument.whole_number_range", name=name, low=least, high=most, value=value)
        return GPTError("argument.number_range", name=name, low=least, high=most, value=value)
    if name in WHOLE:
        return GPTError("argument.whole_number_min", name=name, low=least, value=value)
    return GPTError("argument.number_min", name=name, low=least, value=value)


def nearest(name: str, value: object) -> object:
    """What the slider of a setting stands at for a number that was typed beside it; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return value
    if name in LIMITS:
        value = min(max(value, LIMITS[name].low), LIMITS[name].high)
    return round(value) if name in WHOLE else value


def new_tokens(value: object) -> int:
    """How many tokens to write, of what the page's slider says. Raises ValueError with a sentence."""
    return int(number("max_new_tokens", nearest("max_new_tokens", value), 1))


def sampling_params(
    *,
    temperature: object,
    top_k: object = 0,
    top_p: object = 1.0,
    min_p: object = 0.0,
    repetition_penalty: object = 1.0,
    seed: object = None,
) -> SamplingParams:
    """Checked settings as the model takes them: 0 or 1 where that means off becomes None."""
    given = {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
    }
    checked = {name: number(name, value, LIMITS[name].low, LIMITS[name].high) for name, value in given.items()}
    return SamplingParams(
        temperature=checked["temperature"],
        top_k=checked["top_k"] or None,
        top_p=None if checked["top_p"] == 1 else checked["top_p"],
        min_p=checked["min_p"] or None,
        repetition_penalty=None if checked["repetition_penalty"] == 1 else checked["repetition_penalty"],
        seed=None if seed is None else number("seed", seed, 0),
    )


@dataclass(frozen=True)
class Settings:
    """The controls beside the prompt. length: new tokens; seed: as typed, "" for a fresh one each time; pace: tokens a
    second, 0 for full speed. Whatever `with_value` takes is within its limits."""

    temperature: float = LIMITS["temperature"].default
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    length: int = 100
    seed: str = ""
    pace: int = 50

    def with_value(self, name: str, value: object) -> Settings:
        """The settings with another value of one of them, moved to the nearest allowed one. Raises ValueError for what
        is no number."""
        if name == "seed":
            return replace(self, seed=value.strip()[:18] if isinstance(value, str) else "")
        if name == "pace":
            return replace(self, pace=value if value in PACES else self.pace)
        if name == "length":
            value = min(new_tokens(value), MAX_LENGTH)
        else:
            value = number(name, nearest(name, value), LIMITS[name].low, LIMITS[name].high)
        return replace(self, **{name: value})

    def sampling(self) -> SamplingParams:
        """The settings that a distribution depends on: no seed."""
        return sampling_params(**{name: getattr(self, name) for name in LIMITS})

    def typed_seed(self) -> int | None:
        """The seed that was typed; None where there is none. Raises ValueError for one that is no whole number."""
        if self.seed and not (self.seed.isascii() and self.seed.isdecimal()):
            raise PageError("error.seed")
        return int(self.seed) if self.seed else None

    def sampling_with_seed(self) -> SamplingParams:
        """The settings of a run, with a fresh seed where none was typed. Raises as `typed_seed`."""
        return with_seed(replace(self.sampling(), seed=self.typed_seed()))


def sampling_values(params: SamplingParams) -> dict[str, float]:
    """Sampling parameters as the sliders show them: what is off stands at the end of its range that means so."""
    off = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
    return {name: off[name] if (value := getattr(params, name)) is None else value for name in LIMITS}
