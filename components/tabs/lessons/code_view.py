"""Excerpts of the project's source, located by name and highlighted."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
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
class Code:
    """The source to show: a class, function or constant in a module, such as "GPT.loss" in "gpt.model".

    Docstrings and a class's methods are omitted. `only` selects statements in a function by prefix; ()
    selects the whole function.
    """

    module: str
    name: str
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class Excerpt:
    """An excerpt from the source.

    Attributes:
        file: Path relative to the project.
        name: Name of the definition or the lesson.
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
def excerpt(code: Code) -> Excerpt:
    """Read an excerpt from the module's file. Raises LookupError for an unknown name or statement."""
    path = _path(code.module)
    source = path.read_text(encoding="utf-8").splitlines()
    node = _find(ast.parse("\n".join(source)), code)
    parts = _chosen(node, source, code) if code.only else _whole(node)
    lines = [part if part is None else source[part - 1] for part in parts]
    text = textwrap.dedent("\n".join(line or "" for line in lines))
    first = next(part for part in parts if part is not None)
    return Excerpt(_file(path, code.module), code.name, first, colour(text))


def _file(path: Path, module: str) -> str:
    return "/".join(path.parts[-len(module.split(".")) - (path.name == "__init__.py") :])


def _path(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise LookupError(f"there is no module {module}")
    return Path(spec.origin)


def _imports(block: str, used: set[str]) -> str:
    """Return the imports of used names."""
    nodes = [node for node in ast.parse(block).body if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in nodes:
        node.names = [alias for alias in node.names if (alias.asname or alias.name) in used]
    return "\n".join(ast.unparse(node) for node in nodes if node.names)


def _definitions(tree: ast.Module) -> set[str]:
    return {_name(node) for node in tree.body if isinstance(node, Definition)}


def _find(tree: ast.Module, code: Code) -> Definition:
    found, inside = None, tree.body
    for part in code.name.split("."):
        found = next((node for node in inside if isinstance(node, Definition) and _name(node) == part), None)
        inside = getattr(found, "body", [])
    if found is None:
        raise LookupError(f"{code.module} has no {code.name}")
    return found


def _name(node: Definition) -> str:
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else node.name


def _whole(node: Definition) -> list[int]:
    """Return the line numbers of a definition without its docstring and methods."""
    if isinstance(node, ast.Assign):
        return list(_lines(node))
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    body = [part for part in node.body if not _is_docstring(part)]
    if isinstance(node, ast.ClassDef):
        body = [part for part in body if not isinstance(part, ast.FunctionDef)]
    header = range(first, max(first + 1, node.body[0].lineno))
    return [*header, *(line for part in body for line in _lines(part))]


def _lines(part: ast.stmt) -> range:
    return range(part.lineno, (part.end_lineno or part.lineno) + 1)


def _is_docstring(part: ast.stmt) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)


def _chosen(node: Definition, source: list[str], code: Code) -> list[int | None]:
    """Return the line numbers of the chosen statements, with None for each gap."""
    statements = [part for part in ast.walk(node) if isinstance(part, ast.stmt)]
    lines: set[int] = set()
    for text in code.only:
        found = [part for part in statements if source[part.lineno - 1].strip().startswith(text)]
        if not found:
            raise LookupError(f"{code.module}.{code.name} has no statement {text!r}")
        lines |= {line for part in found for line in _lines(part)}
    ordered = sorted(lines)
    shown: list[int | None] = [*ordered[:1]]
    for before, line in pairwise(ordered):
        shown += [line] if line == before + 1 else [None, line]
    return shown


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
