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

MAX_CHARS = 40
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


@dataclass(frozen=True)
class NumberQuestion:
    """A question that asks for a number.

    Attributes:
        expected: Computes the number from the model and the figure; returns None until the figure is drawn.
        unit: Unit of the expected number, such as 0.01 for percent. Answers may omit it.
        mistakes: Wrong numbers with their own replies, `lesson.<key>.wrong.<n>`, with n counted from 1.
    """

    expected: Expected
    tolerance: float = 1e-9
    unit: float = 1.0
    mistakes: tuple[float | Expected, ...] = ()

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
class ChoiceQuestion:
    """A question with the choices `lesson.<key>.choice.<n>`, with n counted from 1.

    `right` is the number of the right choice. Each of the others has its own reply, `lesson.<key>.wrong.<n>`.
    """

    right: int
    n_choices: int = 3

    def reply(self, given: object, s: Any) -> Reply | None:
        if type(given) is not int or not 1 <= given <= self.n_choices:
            return None
        return Reply("right") if given == self.right else Reply("wrong", f"wrong.{given}")


@dataclass(frozen=True)
class GoalQuestion:
    """A question answered by adjusting the figure until `is_reached` returns True."""

    is_reached: Callable[[Any], bool]

    def reply(self, given: object, s: Any) -> Reply | None:
        return None  # checked while the figure changes


Question = NumberQuestion | ChoiceQuestion | GoalQuestion


def number(value: float, *mistakes: float | Expected, tolerance: float = 1e-9, unit: float = 1.0) -> NumberQuestion:
    """Create a question about a number that is the same for every model."""
    return NumberQuestion(lambda s: value, tolerance, unit, mistakes)


def n_tokens(text: str, *mistakes: float) -> NumberQuestion:
    def expected(s: Any) -> float | None:
        try:
            return len(prompt_ids(s[Open].loaded.tokenizer, text))
        except ValueError:  # a character outside the vocabulary
            return None

    return NumberQuestion(expected, mistakes=mistakes)


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
    "configuration": (number(24, 25, 64), number(64, 12, 9216), ChoiceQuestion(2)),
    "tokenizer": (n_tokens("lily", 1, 4), ChoiceQuestion(3)),
    "merges": (number(1256, 1000), ChoiceQuestion(1)),
    "embedding": (NumberQuestion(WIDTH, mistakes=(VOCABULARY,)), ChoiceQuestion(2)),
    "positions": (ChoiceQuestion(1), ChoiceQuestion(3)),
    "layer_norm": (number(-1, -0.7071, 1, tolerance=0.01), number(0, 1), ChoiceQuestion(2)),
    "activations": (GoalQuestion(lambda s: abs(s[Open].x + 0.75) < 0.01), number(0, 0.5), ChoiceQuestion(2)),
    "feed_forward": (NumberQuestion(FF_SIZE, mistakes=(WIDTH,)), ChoiceQuestion(1)),
    "average": (number(0.25, 0.3333, tolerance=0.001), ChoiceQuestion(3)),
    "dot_products": (number(11, 24), ChoiceQuestion(1)),
    "queries": (number(8, 64), ChoiceQuestion(2)),
    "attention": (GoalQuestion(attends_to_previous), number(1, 0), ChoiceQuestion(1)),
    "verse": (number(7, 8, 6), ChoiceQuestion(1)),
    "shortcuts": (number(25, 6, 0.04, tolerance=2), number(6, 25, tolerance=0.3)),
    "block": (ChoiceQuestion(2), number(2, 1)),
    "model": (NumberQuestion(settled), ChoiceQuestion(3)),
    "skeleton": (ChoiceQuestion(3), ChoiceQuestion(1)),
    "initialisation": (number(0.204, 0.2887, 24, tolerance=0.005), number(1, 0, 0.02), ChoiceQuestion(1)),
    "parameters": (
        number(38.6, 124.4, 163, tolerance=0.6, unit=1e6),
        number(621.8, 163, 155.5, tolerance=1, unit=2**20),
    ),
    "untrained": (
        NumberQuestion(CHANCE, 0.005, 0.01),
        NumberQuestion(NATS, 0.02, mistakes=(BITS, DIGITS)),
    ),
    "batches": (number(100, 10, 110), ChoiceQuestion(2), number(9, 10)),
    "loss": (number(2, 0.693, tolerance=0.01), number(0, 1), ChoiceQuestion(3)),
    "greedy": (number(12, 11, 13), number(256, 300), ChoiceQuestion(1)),
    "sampling": (
        GoalQuestion(lambda s: s[Open].temperature == 0 or s[Open].top_k == 1),
        number(1, 0.5, 4),
        ChoiceQuestion(2),
    ),
    "small": (number(0, 4, 1), ChoiceQuestion(3)),
    "optimizer": (number(0.98, 1.02, 0.8), ChoiceQuestion(1)),
    "training": (ChoiceQuestion(2), ChoiceQuestion(3)),
    "schedule": (number(0.0006, 0.006, tolerance=1e-6), number(0.25, 4), ChoiceQuestion(2)),
    "dropout": (number(2, 0.5), ChoiceQuestion(1)),
    "layouts": (number(3, 12), ChoiceQuestion(2)),
    "next": (ChoiceQuestion(2), number(1, 1024)),
    "concepts": (NumberQuestion(ACTIVE, mistakes=(WIDTH, N_FEATURES)), ChoiceQuestion(1), ChoiceQuestion(3)),
    "rotary": (ChoiceQuestion(3), ChoiceQuestion(1)),
    "rms_norm": (number(1.4, 1, 0.28, tolerance=0.005), number(192, 384)),
    "swiglu": (number(8 / 3, 4, 2, tolerance=0.04), ChoiceQuestion(1)),
    "grouped_queries": (number(4, 0.25, 8), number(32, 1)),
    "no_biases": (number(2112, 1728, 444864), ChoiceQuestion(3)),
}
