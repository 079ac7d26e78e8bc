"""Every error that gpt can raise, collected from its source code so that none is missed."""

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import gpt
from gpt.errors import SENTENCES

FOLDER = Path(gpt.__file__).parent
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.rglob("*.py"))}


def fields(sentence: str) -> dict[str, tuple[str | None, str | None]]:
    """Return the placeholders of a sentence and the format of each."""
    return {name: (spec, conversion) for _, name, spec, conversion in string.Formatter().parse(sentence) if name}


def classes() -> Iterator[str]:
    """Yield the names of GPTError and its subclasses."""
    yield "GPTError"
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and "GPTError" in map(ast.unparse, node.bases):
                yield node.name


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Yield each call in gpt that constructs an error from a key, with its location."""
    names = {*classes(), "super().__init__", "require"}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in names and texts(node):
                yield f"{path.relative_to(FOLDER)}:{node.lineno}", node


def texts(call: ast.Call) -> list[str]:
    """Return the string arguments of a call."""
    return [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]


CALLS = dict(calls())
KEYS = {texts(call)[0] for call in CALLS.values()}
__all__ = ["CALLS", "FOLDER", "KEYS", "SENTENCES", "TREES", "fields", "texts"]
