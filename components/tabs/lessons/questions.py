"""The lessons' questions, which are answered with a number, a choice or a state of the figure."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from components.tabs.lessons.figure import Open, Reply
from components.tabs.lessons.pictures.model_pictures import attends_to_previous, settled
from gpt import GPTConfig
from gpt.analysis.concepts import Dictionary
from gpt.tokenizer import prompt_ids

MAX_CHARS, N_CHOICES = 40, 3
SIGNS = str.maketrans({"−": "-", "–": "-", "⁄": "/", "÷": "/", "×": "*", "·": "*", "²": "^2", "³": "^3", "’": "'"})
FACTORS = {
    "%": 1e-2, "percent": 1e-2, "‰": 1e-3,
    "k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "b": 1e9, "billion": 1e9,
    "千": 1e3, "万": 1e4, "百万": 1e6, "千万": 1e7, "亿": 1e8,
}  # fmt: skip
NUMBER = r"(?:\d{1,3}(?:[ ']\d{3})+(?:[.,]\d+)?|\d[\d.,]*|\.\d+)(?:e[+-]?\d+)?"
FACTOR = rf"(√?)({NUMBER})(?:\^({NUMBER}))?"
TYPED = re.compile(
    r"(?:[=≈~\s]|about\b|约|大约)*(?P<percent>百分之)?\s*(?P<sign>[-+]?)"
    rf"(?P<product>{FACTOR}(?:(?:[*/]|(?=√)){FACTOR})*)"
    r"[*\s]*(?P<unit>百万|千万|[千万亿%‰]|[a-z]+)?(?:[^\d\W]|[%\s.])*"  # a factor and a unit
)


def parse_number(text: object) -> float | None:
    """Parse a typed number, or return None if the text is not a number.

    Accepts "−1", "1/√24", "10,000", "0,5", "38.6 million", "50%" (0.5), "12 tokens" and "１２ 个".
    A comma before groups of three digits separates thousands unless it follows a 0.
    """
    if not isinstance(text, str) or len(text) > MAX_CHARS:
        return None
    plain = unicodedata.normalize("NFKC", text.translate(SIGNS)).translate(SIGNS).casefold()
    plain = re.sub(r"\s*([-+*/^√])\s*", r"\1", plain.replace("sqrt", "√"))
    typed = TYPED.fullmatch(re.sub(rf"\(({NUMBER})\)", r"\1", plain))
    if typed is None:
        return None
    value = FACTORS.get(typed["unit"] or "", 1.0) * (0.01 if typed["percent"] else 1.0)
    try:
        for over, root, digits, power in re.findall(f"([*/]?){FACTOR}", typed["product"]):
            x = float(plain_number(digits)) ** (float(plain_number(power or "1")) * (0.5 if root else 1.0))
            value = value / x if over == "/" else value * x
    except (ArithmeticError, ValueError):
        return None
    return (-value if typed["sign"] == "-" else value) if math.isfinite(value) else None


def plain_number(digits: str) -> str:
    """Remove thousands separators, and write the decimal separator as a point."""
    digits = digits.replace(" ", "").replace("'", "")
    if digits.count(",") and digits.count("."):
        thousands = "," if digits.rindex(",") < digits.rindex(".") else "."
        return digits.replace(thousands, "").replace(",", ".")
    if digits.count(".") > 1:
        return digits.replace(".", "")
    return digits.replace(",", "" if re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+", digits) else ".")


Expected = Callable[[Any], float | None]  # of a snapshot


class Question:
    """A question of a lesson. `right` is the number that answers it, None until the figure is drawn."""

    kind = ""

    def right(self, s: Any) -> float | None:
        return None

    def reply(self, given: object, s: Any) -> Reply | None:
        return None

    def is_reached(self, s: Any) -> bool:
        return False


class Number(Question):
    """A question that asks for a number, which may depend on the model and the figure.

    Attributes:
        mistakes: Wrong numbers with their own replies, `lesson.<key>.wrong.<n>`, with n counted from 1.
        unit: Unit of the expected number, such as 0.01 for percent. Answers may omit it.
    """

    kind = "number"

    def __init__(
        self, expected: float | Expected, *mistakes: float | Expected, tolerance: float = 1e-9, unit: float = 1.0
    ) -> None:
        self.expected, self.mistakes, self.tolerance, self.unit = expected, mistakes, tolerance, unit

    def right(self, s: Any) -> float | None:
        return self.expected(s) if callable(self.expected) else self.expected

    def reply(self, given: object, s: Any) -> Reply | None:
        number = parse_number(given)
        if number is None:
            return Reply("unreadable")
        for n, wrong in enumerate((self.expected, *self.mistakes)):
            meant = wrong(s) if callable(wrong) else wrong
            if meant is not None and min(abs(number - meant), abs(number / self.unit - meant)) <= self.tolerance:
                return Reply("wrong", f"wrong.{n}") if n else Reply("right")
        return Reply("wrong", "hint")


@dataclass(frozen=True)
class Choice(Question):
    """A question with the choices `lesson.<key>.choice.<n>`, n from 1 to N_CHOICES.

    `answer` is the number of the right choice. Each of the others has its own reply, `lesson.<key>.wrong.<n>`.
    """

    answer: int
    kind = "choice"

    def reply(self, given: object, s: Any) -> Reply | None:
        if type(given) is not int or not 1 <= given <= N_CHOICES:
            return None
        return Reply("right") if given == self.answer else Reply("wrong", f"wrong.{given}")


@dataclass(frozen=True)
class Goal(Question):
    """A question that is answered by adjusting the figure until the goal is reached."""

    goal: Callable[[Any], bool]
    kind = "goal"

    def is_reached(self, s: Any) -> bool:
        return self.goal(s)


def n_tokens(text: str) -> Expected:
    def expected(s: Any) -> float | None:
        try:
            return len(prompt_ids(s[Open].loaded.tokenizer, text))
        except ValueError:  # a character outside the vocabulary
            return None

    return expected


def of_config(value: Callable[[GPTConfig], float]) -> Expected:
    return lambda s: value(s[Open].loaded.model.config)


def of_concepts(value: Callable[[Dictionary], float]) -> Expected:
    """Return a number of the lessons' model's first dictionary, or None if it has none."""

    def expected(s: Any) -> float | None:
        concepts = s[Open].loaded.concepts
        return None if concepts is None else value(next(iter(concepts.dictionaries.values())))

    return expected


WIDTH, FF_SIZE = of_config(lambda config: config.n_embd), of_config(lambda config: config.ff_size)
VOCABULARY, CHANCE = of_config(lambda config: config.vocab_size), of_config(lambda config: 100 / config.vocab_size)
NATS = of_config(lambda config: math.log(config.vocab_size))
BITS = of_config(lambda config: math.log2(config.vocab_size))
DIGITS = of_config(lambda config: math.log10(config.vocab_size))
ACTIVE, N_FEATURES = of_concepts(lambda concepts: concepts.active), of_concepts(lambda concepts: len(concepts.bias))

QUESTIONS: dict[str, tuple[Question, ...]] = {
    "configuration": (Number(24, 25, 64), Number(64, 12, 9216), Choice(2)),
    "tokenizer": (Number(n_tokens("lily"), 1, 4), Choice(3)),
    "merges": (Number(1256, 1000), Choice(1)),
    "embedding": (Number(WIDTH, VOCABULARY), Choice(2)),
    "positions": (Choice(1), Choice(3)),
    "layer_norm": (Number(-1, -0.7071, 1, tolerance=0.01), Number(0, 1), Choice(2)),
    "activations": (Goal(lambda s: abs(s[Open].x + 0.75) < 0.01), Number(0, 0.5), Choice(2)),
    "feed_forward": (Number(FF_SIZE, WIDTH), Choice(1)),
    "average": (Number(0.25, 0.3333, tolerance=0.001), Choice(3)),
    "dot_products": (Number(11, 24), Choice(1)),
    "queries": (Number(8, 64), Choice(2)),
    "attention": (Goal(attends_to_previous), Number(1, 0), Choice(1)),
    "verse": (Number(7, 8, 6), Choice(1)),
    "shortcuts": (Number(25, 6, 0.04, tolerance=2), Number(6, 25, tolerance=0.3)),
    "block": (Choice(2), Number(2, 1)),
    "model": (Number(settled), Choice(3)),
    "skeleton": (Choice(3), Choice(1)),
    "initialisation": (Number(0.204, 0.2887, 24, tolerance=0.005), Number(1, 0, 0.02), Choice(1)),
    "parameters": (
        Number(38.6, 124.4, 163, tolerance=0.6, unit=1e6),
        Number(621.8, 163, 155.5, tolerance=1, unit=2**20),
    ),
    "untrained": (Number(CHANCE, tolerance=0.005, unit=0.01), Number(NATS, BITS, DIGITS, tolerance=0.02)),
    "batches": (Number(100, 10, 110), Choice(2), Number(9, 10)),
    "loss": (Number(2, 0.693, tolerance=0.01), Number(0, 1), Choice(3)),
    "greedy": (Number(12, 11, 13), Number(256, 300), Choice(1)),
    "sampling": (Goal(lambda s: s[Open].temperature == 0 or s[Open].top_k == 1), Number(1, 0.5, 4), Choice(2)),
    "small": (Number(0, 4, 1), Choice(3)),
    "optimizer": (Number(0.98, 1.02, 0.8), Choice(1)),
    "training": (Choice(2), Choice(3)),
    "schedule": (Number(0.0006, 0.006, tolerance=1e-6), Number(0.25, 4), Choice(2)),
    "dropout": (Number(2, 0.5), Choice(1)),
    "layouts": (Number(3, 12), Choice(2)),
    "next": (Choice(2), Number(1, 1024)),
    "concepts": (Number(ACTIVE, WIDTH, N_FEATURES), Choice(1), Choice(3)),
    "rotary": (Choice(3), Choice(1)),
    "rms_norm": (Number(1.4, 1, 0.28, tolerance=0.005), Number(192, 384)),
    "swiglu": (Number(8 / 3, 4, 2, tolerance=0.04), Choice(1)),
    "grouped_queries": (Number(4, 0.25, 8), Number(32, 1)),
    "no_biases": (Number(2112, 1728, 444864), Choice(3)),
}
