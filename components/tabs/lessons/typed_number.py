"""A parser for typed numbers with fractions, roots, percent signs, units, separators or full-width digits."""

from __future__ import annotations

import ast
import math
import operator
import re
import unicodedata

MAX_CHARS = 40
SIGNS = str.maketrans({"−": "-", "–": "-", "⁄": "/", "÷": "/", "×": "*", "·": "*", "²": "^2", "³": "^3", "’": "'"})
FACTORS = {
    "%": 1e-2, "percent": 1e-2, "‰": 1e-3,
    "k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "b": 1e9, "billion": 1e9,
    "千": 1e3, "万": 1e4, "百万": 1e6, "千万": 1e7, "亿": 1e8,
}  # fmt: skip
NUMBER = r"(?:\d{1,3}(?:[ ']\d{3})+(?:[.,]\d+)?|\d[\d.,]*|\.\d+)(?:e[+-]?\d+)?"
TYPED = re.compile(
    r"(?:[=≈~\s]|about\b|约|大约)*(?P<percent>百分之)?"
    rf"(?P<expression>(?:{NUMBER}|sqrt|[-+*/^()√\s])+?)"
    r"[*\s]*(?P<factor>百万|千万|[千万亿%‰]|[a-z]+)?(?:[^\d\W]|[%\s.])*"  # a factor and a unit
)
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def parse_number(text: object) -> float | None:
    """Parse a typed number, or return None if the text is not a number.

    Accepts "−1", "1/√24", "10,000", "0,5", "38.6 million", "50%" (0.5), "12 tokens" and "１２ 个".
    A comma before groups of three digits separates thousands unless it follows a 0.
    """
    if not isinstance(text, str) or len(text) > MAX_CHARS:
        return None
    plain = unicodedata.normalize("NFKC", text.translate(SIGNS)).translate(SIGNS).casefold()
    typed = TYPED.fullmatch(plain)
    if typed is None:
        return None
    try:
        python = re.sub(NUMBER, lambda found: f"({float(plain_number(found[0]))!r})", typed["expression"])
        python = re.sub(r"sqrt|√", "~", python).replace("^", "**")  # ~ binds as tightly as a root
        python = re.sub(r"\)\s*~", ")*~", python)
        number = evaluated(ast.parse(python.strip(), mode="eval").body)
        number *= FACTORS.get(typed["factor"] or "", 1.0) * (0.01 if typed["percent"] else 1.0)
    except (ArithmeticError, KeyError, SyntaxError, TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def plain_number(digits: str) -> str:
    """Remove thousands separators, and write the decimal separator as a point."""
    digits = digits.replace(" ", "").replace("'", "")
    if digits.count(",") and digits.count("."):
        thousands = "," if digits.rindex(",") < digits.rindex(".") else "."
        return digits.replace(thousands, "").replace(",", ".")
    if digits.count(".") > 1:
        return digits.replace(".", "")
    return digits.replace(",", "" if re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+", digits) else ".")


def evaluated(node: ast.expr) -> float:
    """Evaluate an arithmetic expression in which ~ denotes the square root."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return math.sqrt(evaluated(inner))
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -evaluated(inner)
        case ast.BinOp(left=left, op=op, right=right):
            return float(OPERATORS[type(op)](evaluated(left), evaluated(right)))
    return evaluated(node.operand) if isinstance(node, ast.UnaryOp) else math.nan
