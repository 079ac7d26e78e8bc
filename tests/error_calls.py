"""Every error that gpt can raise, collected from its source code so that none is missed."""

import ast
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import gpt
from gpt.errors import SENTENCES

FOLDER = Path(gpt.__file__).parent


@cache
def trees() -> dict[Path, ast.Module]:
    """Return the syntax trees of gpt's files."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.rglob("*.py"))}


def fields(sentence: str) -> dict[str, tuple[str | None, str | None]]:
    """Return the placeholders of a sentence and the format of each."""
    return {name: (spec, conversion) for _, name, spec, conversion in string.Formatter().parse(sentence) if name}


def classes() -> Iterator[str]:
    """Yield the names of GPTError and its subclasses."""
    yield "GPTError"
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and {"GPTError", "Unclear"} & set(map(ast.unparse, node.bases)):
                yield node.name


@cache
def calls() -> dict[str, ast.Call]:
    """Return each call in gpt that constructs an error from a key, by its location."""
    names = {*classes(), "__init__", "require", "reading"}
    return {
        f"{path.relative_to(FOLDER)}:{node.lineno}": node
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called(node) in names and texts(node)
    }


def called(call: ast.Call) -> str:
    """Return the name of the function or method that is called, or ""."""
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def texts(call: ast.Call) -> list[str]:
    """Return the string arguments of a call."""
    return [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]


__all__ = ["SENTENCES", "called", "calls", "fields", "texts", "trees"]
