"""What a person may set: one table of limits for the page and the API."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpt import SamplingParams
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
