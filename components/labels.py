"""Formatting of tokens and numbers for display."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

ACTIVATIONS = {
    "gelu_tanh": "GELU (tanh)",
    "gelu": "GELU (erf)",
    "relu": "ReLU",
    "silu": "SiLU",
}  # the same in all languages
_MARKS = str.maketrans({" ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍", "\x00": "␀"})
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Vocabulary(Protocol):
    """The part of a tokenizer that is used here; keeps figures independent of models."""

    def token_bytes(self, token_id: int) -> bytes: ...


def token_text(tokenizer: Vocabulary, token_id: int) -> str:
    r"""The characters of one token; invalid bytes as \xNN."""
    return tokenizer.token_bytes(token_id).decode("utf-8", "backslashreplace")


def visible(text: str) -> str:
    """The text with visible marks for spaces, newlines and tabs."""
    return text.translate(_MARKS)


def quoted(tokenizer: Vocabulary, token_id: int) -> str:
    """A token in quotation marks for a sentence."""
    return f"“{visible(token_text(tokenizer, token_id))}”"


def decimal(value: float, digits: int = 2) -> str:
    """A number with a real minus sign: −0.17; what rounds to zero has none."""
    return f"{round(float(value), digits) or 0.0:.{digits}f}".replace("-", "−")


def signed(value: float, digits: int = 2) -> str:
    """+1.23 or −1.23; what rounds to zero has no sign."""
    text = decimal(value, digits)
    return f"+{text}" if round(float(value), digits) > 0 else text


def decimals(values: Iterable[float], least: int = 2, most: int = 6) -> int:
    """The number of decimals that gives the largest of several values two significant digits."""
    size = max((abs(float(value)) for value in values), default=0.0)
    return min(most, max(least, 1 - math.floor(math.log10(size)))) if size else least


def power(value: float) -> str:
    """A number as a power of ten with two digits: −1.5 × 10⁻⁴."""
    digits, exponent = f"{value:.1e}".split("e")
    raised = str(int(exponent)).translate(_RAISED)
    return f"{digits} × 10{raised}".replace("-", "−") if value else "0"


def percent(probability: float) -> str:
    """A probability with as many digits as needed and a non-breaking space.

    < 0.01 %, 0.05 %, 3.2 %, 41 %, 99.8 %, > 99.99 %; 0 % and 100 % only for exact values up to float rounding.
    """
    value = 100 * probability
    if 0 < value < 0.01:
        return "< 0.01\u00a0%"
    if 99.995 <= value < 99.9999:
        return "> 99.99\u00a0%"
    if value == 0 or value >= 99.995:
        digits = 0
    elif value < 0.95 or value >= 99.95:
        digits = 2
    else:
        digits = 1 if value < 9.95 or value >= 99.5 else 0
    return f"{value:.{digits}f}\u00a0%"
