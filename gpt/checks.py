"""Checks of arguments. Each raises a ValueError that names the argument, its value and the limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TypeGuard

from gpt.errors import GPTError


def is_integer(value: object) -> TypeGuard[int]:
    """Whether value is an integer; bool does not count."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether value is a finite real number within the range of a float; bool does not count."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def check_integer(name: str, value: object, low: int, high: int | None = None) -> None:
    """value must be an integer of at least `low`, and of at most `high` unless that is None."""
    if high is None:
        if not is_integer(value) or value < low:
            raise GPTError("argument.whole_number_min", name=name, low=low, value=value)
    elif not is_integer(value) or not low <= value <= high:
        raise GPTError("argument.whole_number_range", name=name, low=low, high=high, value=value)


def check_number(name: str, value: object, low: float, high: float = math.inf) -> None:
    """value must be a finite number of at least `low` and at most `high`."""
    if high == math.inf:
        if not is_number(value) or value < low:
            raise GPTError("argument.number_min", name=name, low=low, value=value)
    elif not is_number(value) or not low <= value <= high:
        raise GPTError("argument.number_range", name=name, low=low, high=high, value=value)


def check_switch(name: str, value: object) -> None:
    """value must be true or false."""
    if not isinstance(value, bool):
        raise GPTError("argument.switch", name=name, value=value)


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """value must be one of `choices`."""
    if value not in choices:
        raise GPTError("argument.choice", name=name, choices=", ".join(choices), value=value)


def check_token_id(token_id: int, n_vocab: int) -> None:
    """token_id must lie in 0..n_vocab - 1."""
    if not 0 <= token_id < n_vocab:
        raise GPTError("token.unknown", token=token_id, last=n_vocab - 1)


def check_position(position: int, length: int) -> None:
    """position must lie in 0..length - 1."""
    if not 0 <= position < length:
        raise GPTError("position.unknown", position=position, last=length - 1)


def check_layer(layer: int, n_layer: int) -> None:
    """layer must lie in 0..n_layer - 1."""
    if not 0 <= layer < n_layer:
        raise GPTError("layer.unknown", layer=layer, last=n_layer - 1)


def check_head(head: int, n_head: int) -> None:
    """head must lie in 0..n_head - 1."""
    if not 0 <= head < n_head:
        raise GPTError("head.unknown", head=head, last=n_head - 1)
