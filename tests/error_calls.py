"""The errors that gpt can raise, as its sources construct them, so that none is missed."""

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import gpt

FOLDER = Path(gpt.__file__).parent
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.rglob("*.py"))}


def fields(sentence: str) -> dict[str, tuple[str | None, str | None]]:
    """The placeholders of a sentence and how each is written."""
    return {name: (spec, conversion) for _, name, spec, conversion in string.Formatter().parse(sentence) if name}


def classes() -> Iterator[str]:
    """The names of GPTError and of the classes derived from it."""
    yield "GPTError"
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and "GPTError" in map(ast.unparse, node.bases):
                yield node.name


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Each place in gpt with a key and a sentence, and the call there."""
    names = {*classes(), "super().__init__"}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in names and len(texts(node)) == 2:
                yield f"{path.relative_to(FOLDER)}:{node.lineno}", node


def texts(call: ast.Call) -> list[str]:
    """The arguments of a call that are strings."""
    return [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]


CALLS = dict(calls())
SENTENCES: dict[str, str] = dict(map(texts, CALLS.values()))  # by key
