"""Formatting of tokens and numbers for display."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, SupportsFloat
from unicodedata import category, lookup, name

from components.i18n import is_exact, t

ACTIVATIONS = {
    "gelu_tanh": "GELU (tanh)",
    "gelu": "GELU (erf)",
    "relu": "ReLU",
    "silu": "SiLU",
    "relu2": "ReLU²",
}  # identical in all languages
_MARKS = str.maketrans({"\n": "⏎", "\t": "⇥"})
_SHORT_NAMES = (  # Unicode's abbreviations; other invisible characters are shown by their code point
    "NUL SOH STX ETX EOT ENQ ACK BEL BS VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EOM SUB ESC FS GS RS US DEL "
    "NEL NBSP SHY CGJ ALM MVS ZWSP ZWNJ ZWJ LRM RLM LRE RLE PDF LRO RLO NNBSP MMSP WJ LRI RLI FSI PDI BOM "
    "VS1 VS2 VS3 VS4 VS5 VS6 VS7 VS8 VS9 VS10 VS11 VS12 VS13 VS14 VS15 VS16"
)
_SHORT_NAME = {lookup(short): short for short in _SHORT_NAMES.split()}
# Spelled out because Python and browsers use different Unicode versions.
_INVISIBLE = (  # all invisible characters except space, tab and newline
    r"\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    r"\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# The same for widgets/labels.js.
MARKS = {"invisible": re.sub(r"\\U000(\w{5})", r"\\u{\1}", _INVISIBLE), "names": _SHORT_NAME}
_REPEATED = re.compile(rf"([{_INVISIBLE}])\1*")
_RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
_END = b"<|endoftext|>"  # a single token with these characters is always the control token
_ISOLATE = "\u2068\u2069"  # first strong isolate and pop directional isolate, around right-to-left text
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Vocabulary(Protocol):
    """The tokenizer method that labels need. Using this protocol keeps figures independent of models."""

    def token_bytes(self, token_id: int) -> bytes: ...


def token_text(tokenizer: Vocabulary, token_id: int) -> str:
    r"""Return the characters of one token, with invalid bytes as \xNN."""
    return tokenizer.token_bytes(token_id).decode("utf-8", "backslashreplace")


def marked(text: str) -> str:
    """Mark each invisible character in a text except the space: ⏎, ⇥, [ESC], [NBSP], [VS16×2].

    A combining character at the start is placed on a dotted circle. Text with right-to-left letters is isolated.
    """
    shown = _REPEATED.sub(_code, text).translate(_MARKS)
    if shown and category(shown[0]).startswith("M"):
        shown = f"◌{shown}"
    return shown.join(_ISOLATE) if _RIGHT_TO_LEFT.search(shown) else shown


def visible(text: str) -> str:
    """Mark each invisible character in a text, including the space."""
    return marked(text).replace(" ", "·")


def visible_token(tokenizer: Vocabulary, token_id: int) -> str:
    return visible(token_text(tokenizer, token_id))


def alone(text: str) -> str:
    """Return the visible form of a text that stands alone in a drawing; its length is what is seen of it."""
    return visible(text).strip(_ISOLATE)


def shortened(text: str, longest: int) -> str:
    """Return the visible text, truncated with … between two characters if it exceeds `longest` characters."""
    if len(alone(text)) <= longest:
        return visible(text)
    kept = 1
    while len(alone(text[: kept + 1])) < longest:
        kept += 1
    return visible(text[:kept]) + "…"


def unseen_names(text: str) -> list[tuple[str, str]]:
    """Return (code point, name) for each distinct invisible character except space, tab and newline."""
    return [(f"U+{ord(c):04X}", name(c, visible(c))) for c in dict.fromkeys(re.findall(f"[{_INVISIBLE}]", text))]


def _code(run: re.Match[str]) -> str:
    character, n = run[1], len(run[0])
    times = f"×{n}" if n > 1 else ""
    return f"[{_SHORT_NAME.get(character, f'U+{ord(character):04X}')}{times}]"


def quoted(tokenizer: Vocabulary, token_id: int) -> str:
    """Quote a token for a sentence, without a leading space, or describe it if it is not valid text."""
    data = tokenizer.token_bytes(token_id)
    if is_exact():
        return f"“{visible(token_text(tokenizer, token_id))}”"
    if data == _END:
        return t("token.end")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return t("token.part")
    return f"“{visible(text[1:] if text[:1] == ' ' and text.strip() else text)}”"


def bar_label(tokenizer: Vocabulary, token_id: int) -> str:
    """Name a token for the label beside its bar: as in a sentence, but without quotation marks."""
    return quoted(tokenizer, token_id).removeprefix("“").removesuffix("”")


def placed(token: str, position: int) -> str:
    """Return a token's name for use inside a sentence, with its position if all digits are shown."""
    return t("token.at", token=token, position=position) if is_exact() else token


def layer_head_name(place: Sequence[int]) -> str:
    """Return a head's name for use inside a sentence. place: (layer, head), counted from 0."""
    return t("part.head", layer=place[0], head=place[1])


def listed(names: Iterable[str]) -> str:
    return t("list.comma").join(names)


def seed_of(seed: int | None) -> str:
    """Return a text's seed for the end of a status line if all digits are shown, otherwise ""."""
    return t("seed.of", seed=seed) if is_exact() else ""


def decimal(value: SupportsFloat, digits: int = 2) -> str:
    """Format a number with a real minus sign, such as −0.17. A number that rounds to zero has no sign."""
    return f"{round(float(value), digits) or 0.0:.{digits}f}".replace("-", "−")


def signed(value: float, digits: int = 2) -> str:
    """Format a number with its sign, such as +1.23 or −1.23. A number that rounds to zero has no sign."""
    text = decimal(value, digits)
    return f"+{text}" if round(float(value), digits) > 0 else text


def decimals(values: Iterable[float]) -> int:
    """Return how many decimals, from 2 to 6, give the largest value two significant digits."""
    size = max((abs(float(value)) for value in values), default=0.0)
    return min(6, max(2, 1 - math.floor(math.log10(size)))) if size else 2


def power(value: float) -> str:
    """Format a number in scientific notation with two digits: −1.5 × 10⁻⁴."""
    digits, exponent = f"{value:.1e}".split("e")
    raised = str(int(exponent)).translate(_RAISED)
    return f"{digits} × 10{raised}".replace("-", "−") if value else "0"


class Later:
    """A label that is formatted only when its sentence is, in the language and with the digits set at that time."""

    def __init__(self, write: Callable[..., str], *values: Any) -> None:
        self._write, self._values = write, values

    def __str__(self) -> str:
        return self._write(*self._values)

    def __format__(self, form: str) -> str:
        return format(str(self), form)


def percent(probability: float) -> str:
    """Format a probability in whole percent: under 1%, 41%, over 99%.

    0% and 100% are used only for exact values, up to float rounding. With all digits shown, the number of digits
    depends on the value: < 0.01%, 0.05%, 3.2%, 41%, 99.8%, > 99.99%.
    """
    value = 100 * probability
    if is_exact():
        return _exact_percent(value)
    if 0 < value < 1:
        return t("number.under", p="1%")
    if 99 < value < 99.9999:
        return t("number.over", p="99%")
    return f"{math.floor(value + 0.5)}%"


def _exact_percent(value: float) -> str:
    if 0 < value < 0.01:
        return "< 0.01%"
    if 99.995 <= value < 99.9999:
        return "> 99.99%"
    if value == 0 or 9.95 <= value < 99.5 or value >= 99.995:
        return f"{value:.0f}%"
    return f"{value:.1f}%" if 0.95 <= value < 99.95 else f"{value:.2f}%"
