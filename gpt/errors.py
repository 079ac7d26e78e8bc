"""Translatable errors, and checks of arguments that raise them.

Each error has a key, an English sentence (errors.json) and values for its placeholders. Those of the checks name the
argument, its value and the limit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from numbers import Integral, Number, Real
from pathlib import Path
from typing import Any, TypeGuard

MAX_QUOTED_CHARS = 40
SENTENCES: dict[str, str] = json.loads(Path(__file__).with_name("errors.json").read_text(encoding="utf-8"))


class GPTError(ValueError):
    """An error whose message can be translated.

    Values other than numbers, strings, None and errors are stored as strings, to keep every error picklable.

    Args:
        key: Key of the sentence in errors.json and in the translations.
        sentence: English sentence with placeholders for `str.format`, if it is not in errors.json.
        values: Values for the placeholders.
    """

    def __init__(self, key: str, sentence: str | None = None, /, **values: object) -> None:
        self.key, self.sentence = key, SENTENCES[key] if sentence is None else sentence
        kept = (str, Number, GPTError, type(None))
        self.values = {
            name: x if isinstance(x, kept) else Verbatim(x.__name__ if isinstance(x, type) else x)
            for name, x in values.items()
        }
        super().__init__(self.sentence.format(**self.values))

    def __reduce__(self) -> tuple[Any, ...]:
        return ValueError.__new__, (type(self), str(self)), vars(self)


class Verbatim(str):
    """A string whose repr has no quotes."""

    def __repr__(self) -> str:
        return str(self)


def quoted(value: object) -> Verbatim:
    return Verbatim(repr(value)[:MAX_QUOTED_CHARS])


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether value is an integer and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether value is a finite real number within the range of a float and not a bool."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def require(condition: object, key: str, /, **values: object) -> None:
    """Raise GPTError with this key and these values unless the condition is true."""
    if not condition:
        raise GPTError(key, **values)


def check_integer(name: str, value: object, low: int, high: int | None = None) -> None:
    """Require an integer of at least `low` and, unless `high` is None, at most `high`."""
    if not is_integer(value) or value < low or (high is not None and value > high):
        raise out_of_range(name, value, low, high, whole=True)


def check_number(name: str, value: object, low: float, high: float = math.inf) -> None:
    """Require a finite number between `low` and `high`, both inclusive."""
    if not is_number(value) or not low <= value <= high:
        raise out_of_range(name, value, low, None if high == math.inf else high, whole=False)


def out_of_range(name: str, value: object, low: object, high: object | None, *, whole: bool) -> GPTError:
    """Return the error for a value that is not a number between `low` and `high` (None: no upper limit)."""
    if whole and high is None:
        return GPTError("argument.whole_number_min", name=name, low=low, value=value)
    if whole:
        return GPTError("argument.whole_number_range", name=name, low=low, high=high, value=value)
    if high is None:
        return GPTError("argument.number_min", name=name, low=low, value=value)
    return GPTError("argument.number_range", name=name, low=low, high=high, value=value)


def check_above(name: str, value: object, low: float) -> None:
    require(is_number(value) and value > low, "argument.above", name=name, low=low, value=value)


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    require(value in choices, "argument.choice", name=name, choices=", ".join(map(str, choices)), value=value)


def check_token_id(token_id: int, n_vocab: int) -> None:
    require(0 <= token_id < n_vocab, "token.unknown", token=token_id, last=n_vocab - 1)


def check_position(position: int, length: int) -> None:
    require(0 <= position < length, "position.unknown", position=position, last=length - 1)


def check_layer(layer: int, n_layer: int) -> None:
    require(0 <= layer < n_layer, "layer.unknown", layer=layer, last=n_layer - 1)


def check_head(head: int, n_head: int) -> None:
    require(0 <= head < n_head, "head.unknown", head=head, last=n_head - 1)
