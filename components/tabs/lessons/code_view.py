"""Excerpts of the project's source, located by name and highlighted."""

from __future__ import annotations

import ast
import re
import textwrap
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers.python import PythonLexer

Definition = ast.ClassDef | ast.FunctionDef | ast.Assign
MINIMAL = "gpt.experiments.minimal"  # the code of the lessons


class Excerpt(NamedTuple):
    """file: path relative to the project. line: 1-based number of the first line."""

    file: str
    name: str
    line: int
    text: str


@lru_cache(maxsize=64)
def printed(lesson: str) -> Excerpt:
    """Return a lesson's section of `minimal`, with the imports that it needs to run on its own."""
    file, source = _read(MINIMAL)
    header, *sections = re.split(r"^# %% (\w+): .*\n+", source, flags=re.MULTILINE)
    text = dict(zip(sections[::2], sections[1::2], strict=True))[lesson].rstrip()
    names = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    used = {name.id for name in names} - {name.id for name in names if isinstance(name.ctx, ast.Store)}
    own, whole = (_definitions(ast.parse(each)).keys() for each in (text, source))
    groups = [_imports(block, used) for block in header.split('"""')[-1].split("\n\n")]
    groups.append("\n".join(f"from {MINIMAL} import {name}" for name in sorted((whole - own) & used)))
    code = "\n\n".join(filter(None, groups)) + "\n\n\n" + text
    return Excerpt(file, lesson, source[: source.index(text)].count("\n") + 1, code.lstrip())


@lru_cache(maxsize=128)
def excerpt(code: str) -> Excerpt:
    """Read a definition without its docstring and, for a class, without its methods.

    code: the class, function or constant in gpt, such as "model:GPT.loss". Raises LookupError for an unknown name.
    """
    module, _, name = code.partition(":")
    file, source = _read(MINIMAL.replace("experiments.minimal", module))
    node: Any = ast.parse(source)
    for part in name.split("."):
        node = _definitions(node)[part]
    lines, numbers = source.splitlines(), _lines(node)
    text = textwrap.dedent("\n".join(lines[number - 1] for number in numbers))
    return Excerpt(file, name, numbers[0], text.rstrip())


@lru_cache(maxsize=128)
def coloured(code: str) -> str:
    """Return code as HTML, whose classes are the short names of pygments."""
    return str(highlight(code, PythonLexer(), HtmlFormatter(nowrap=True))).rstrip("\n")


def _read(module: str) -> tuple[str, str]:
    """Return a module's path relative to the project, and its source."""
    spec = find_spec(module)
    assert spec is not None
    path = Path(str(spec.origin))
    n_parts = len(module.split(".")) + (path.name == "__init__.py")
    return "/".join(path.parts[-n_parts:]), path.read_text(encoding="utf-8")


def _imports(block: str, used: set[str]) -> str:
    nodes = [node for node in ast.parse(block).body if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in nodes:
        node.names = [alias for alias in node.names if (alias.asname or alias.name) in used]
    return "\n".join(ast.unparse(node) for node in nodes if node.names)


def _definitions(node: Any) -> dict[str, Definition]:
    found = (each for each in node.body if isinstance(each, Definition))
    return {ast.unparse(each.targets[0]) if isinstance(each, ast.Assign) else each.name: each for each in found}


def _lines(node: Definition) -> list[int]:
    """Return the line numbers of a definition without its docstring; a class ends before its first method."""
    first, last = _first(node), node.end_lineno or node.lineno
    if isinstance(node, ast.ClassDef):
        methods = (_first(part) - 1 for part in node.body if isinstance(part, ast.FunctionDef))
        last = next(methods, last)
    if isinstance(node, ast.Assign) or not ast.get_docstring(node):
        return [*range(first, last + 1)]
    docstring = node.body[0]
    return [*range(first, docstring.lineno), *range((docstring.end_lineno or 0) + 1, last + 1)]


def _first(node: Definition) -> int:
    return min(each.lineno for each in (node, *getattr(node, "decorator_list", ())))
