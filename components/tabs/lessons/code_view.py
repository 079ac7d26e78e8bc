"""Excerpts of the project's source, located by name and highlighted."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String

Definition = ast.ClassDef | ast.FunctionDef | ast.Assign
CodeToken = tuple[str, str]  # kind ("k" keyword, "s" string, "c" comment, "d" defined name, "n" number, "" other), text
MINIMAL = "gpt.experiments.minimal"  # the code of the lessons
PYTHON = PythonLexer(stripnl=False, ensurenl=False)
KINDS = {
    Keyword: "k",
    Operator.Word: "k",
    Name.Builtin.Pseudo: "k",
    String: "s",
    Comment: "c",
    Name.Function: "d",
    Name.Class: "d",
    Number: "n",
}


@dataclass(frozen=True)
class Excerpt:
    """An excerpt from the source.

    Attributes:
        file: Path relative to the project.
        line: 1-based number of the first line.
        lines: The tokens in each line.
    """

    file: str
    name: str
    line: int
    lines: tuple[tuple[CodeToken, ...], ...]

    @property
    def text(self) -> str:
        return "\n".join("".join(text for _, text in line) for line in self.lines)


@lru_cache(maxsize=64)
def printed(lesson: str) -> Excerpt:
    """Return a lesson's section of `minimal`, with the imports that it needs to run on its own."""
    path = _path(MINIMAL)
    source = path.read_text(encoding="utf-8")
    header, *sections = re.split(r"^# %% (\w+): .*\n+", source, flags=re.MULTILINE)
    text = dict(zip(sections[::2], sections[1::2], strict=True))[lesson].rstrip()
    names = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    used = {name.id for name in names} - {name.id for name in names if isinstance(name.ctx, ast.Store)}
    own, whole = (_definitions(ast.parse(each)) for each in (text, source))
    groups = [_imports(block, used) for block in header.split('"""')[-1].split("\n\n")]
    groups.append("\n".join(f"from {MINIMAL} import {name}" for name in sorted((whole - own) & used)))
    code = "\n\n".join(filter(None, groups)) + "\n\n\n" + text
    return Excerpt(_file(path, MINIMAL), lesson, source[: source.index(text)].count("\n") + 1, colour(code.lstrip()))


@lru_cache(maxsize=128)
def excerpt(code: str) -> Excerpt:
    """Read a definition without its docstring and, for a class, without its methods.

    code: the class, function or constant, such as "gpt.model:GPT.loss". Raises LookupError for an unknown name.
    """
    module, _, name = code.partition(":")
    path = _path(module)
    source = path.read_text(encoding="utf-8")
    lines, numbers = source.splitlines(), _lines(_find(ast.parse(source), name))
    text = textwrap.dedent("\n".join(lines[number - 1] for number in numbers))
    return Excerpt(_file(path, module), name, numbers[0], colour(text.rstrip()))


def _file(path: Path, module: str) -> str:
    return "/".join(path.parts[-len(module.split(".")) - (path.name == "__init__.py") :])


def _path(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise LookupError(f"there is no module {module}")
    return Path(spec.origin)


def _imports(block: str, used: set[str]) -> str:
    nodes = [node for node in ast.parse(block).body if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in nodes:
        node.names = [alias for alias in node.names if (alias.asname or alias.name) in used]
    return "\n".join(ast.unparse(node) for node in nodes if node.names)


def _definitions(tree: ast.Module) -> set[str]:
    return {_name(node) for node in tree.body if isinstance(node, Definition)}


def _find(node: ast.AST, name: str) -> Definition:
    for part in name.split("."):
        inside = getattr(node, "body", [])
        node = next((each for each in inside if isinstance(each, Definition) and _name(each) == part), ast.Pass())
    if not isinstance(node, Definition):
        raise LookupError(f"there is no {name}")
    return node


def _name(node: Definition) -> str:
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else node.name


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


def colour(text: str) -> tuple[tuple[CodeToken, ...], ...]:
    """Highlight source code, returning the tokens in each line."""
    lines: list[list[CodeToken]] = [[]]
    for token, value in PYTHON.get_tokens(text):
        kind = next((kind for group, kind in KINDS.items() if token in group), "")
        first, *others = value.split("\n")
        _add(lines[-1], kind, first)
        for other in others:
            lines.append([])
            _add(lines[-1], kind, other)
    return tuple(tuple(line) for line in lines)


def _add(line: list[CodeToken], kind: str, text: str) -> None:
    """Append text to a line, merging it with the last token if both are of the same kind."""
    if line and line[-1][0] == kind:
        line[-1] = (kind, line[-1][1] + text)
    elif text:
        line.append((kind, text))
