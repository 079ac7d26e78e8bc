"""Pieces of the real source, found by name, cut to what matters and coloured lightly: they cannot go stale."""

from __future__ import annotations

import ast
import io
import keyword
import textwrap
import tokenize
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

Definition = ast.ClassDef | ast.FunctionDef | ast.Assign
Piece = tuple[str, str]  # what it is ("k" keyword, "s" string, "c" comment, "d" name defined, "n" number, ""), its text


@dataclass(frozen=True)
class Code:
    """Which source to show: a class, function or constant of a module, such as "GPT.loss" of "gpt.model".

    Docstrings are left out, and the methods of a class. only: of a function's statements those that begin with one
    of these texts, alone; () is the whole function.
    """

    module: str
    name: str
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class Excerpt:
    """Source ready to be shown. file: relative to the project; line: its first, from 1; lines: pieces of each line."""

    file: str
    name: str
    line: int
    lines: tuple[tuple[Piece, ...], ...]

    @property
    def text(self) -> str:
        """The source without colours."""
        return "\n".join("".join(text for _, text in line) for line in self.lines)


@lru_cache(maxsize=128)
def excerpt(code: Code) -> Excerpt:
    """Read it from the module's file. Raises LookupError, naming it, for a name or a statement that is not there."""
    path = _path(code.module)
    source = path.read_text(encoding="utf-8").splitlines()
    node = _find(ast.parse("\n".join(source)), code)
    parts = _chosen(node, source, code) if code.only else _whole(node)
    lines = [part if part is None else source[part - 1] for part in parts]
    text = textwrap.dedent("\n".join(line or "" for line in lines))
    file = "/".join(path.parts[-len(code.module.split(".")) - (path.name == "__init__.py") :])
    return Excerpt(file, code.name, parts[0], colour(text))


def _path(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise LookupError(f"there is no module {module}")
    return Path(spec.origin)


def _find(tree: ast.Module, code: Code) -> Definition:
    found: ast.AST = tree
    for part in code.name.split("."):
        inside = getattr(found, "body", [])
        found = next((node for node in inside if isinstance(node, Definition) and _name(node) == part), None)
        if found is None:
            raise LookupError(f"{code.module} has no {code.name}")
    return found


def _name(node: Definition) -> str:
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else node.name


def _whole(node: Definition) -> list[int]:
    """The numbers of its lines, without docstring and methods."""
    if isinstance(node, ast.Assign):
        return list(range(node.lineno, node.end_lineno + 1))
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    body = [part for part in node.body if not _is_docstring(part)]
    if isinstance(node, ast.ClassDef):
        body = [part for part in body if not isinstance(part, ast.FunctionDef)]
    header = range(first, max(first + 1, node.body[0].lineno))
    return [*header, *(line for part in body for line in range(part.lineno, part.end_lineno + 1))]


def _is_docstring(part: ast.stmt) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)


def _chosen(node: Definition, source: list[str], code: Code) -> list[int | None]:
    """The numbers of the lines of some of its statements, None where others lie between."""
    statements = [part for part in ast.walk(node) if isinstance(part, ast.stmt)]
    lines: set[int] = set()
    for text in code.only:
        found = [part for part in statements if source[part.lineno - 1].strip().startswith(text)]
        if not found:
            raise LookupError(f"{code.module}.{code.name} has no statement {text!r}")
        lines |= {line for part in found for line in range(part.lineno, part.end_lineno + 1)}
    shown: list[int | None] = []
    for line in sorted(lines):
        if shown and line > shown[-1] + 1:
            shown.append(None)
        shown.append(line)
    return shown


def colour(text: str) -> tuple[tuple[Piece, ...], ...]:
    """Each line as pieces that, joined, are the line again. What Python cannot read to its end stays plain."""
    lines = text.split("\n")
    spans: list[list[tuple[int, int, str]]] = [[] for _ in lines]
    before = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            kind = _kind(token, before)
            before = token.string
            for row in range(token.start[0], token.end[0] + 1):
                if kind and row <= len(lines):
                    start = token.start[1] if row == token.start[0] else 0
                    end = token.end[1] if row == token.end[0] else len(lines[row - 1])
                    spans[row - 1].append((start, end, kind))
    except (tokenize.TokenError, IndentationError):
        pass
    return tuple(_pieces(line, marks) for line, marks in zip(lines, spans, strict=True))


def _kind(token: tokenize.TokenInfo, before: str) -> str:
    if token.type == tokenize.NAME:
        if before in ("def", "class"):
            return "d"
        return "k" if keyword.iskeyword(token.string) or token.string == "self" else ""
    kinds = {tokenize.COMMENT: "c", tokenize.STRING: "s", tokenize.NUMBER: "n"}
    fstring = getattr(tokenize, "FSTRING_MIDDLE", None)
    return "s" if token.type == fstring else kinds.get(token.type, "")


def _pieces(line: str, marks: list[tuple[int, int, str]]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    at = 0
    for start, end, kind in marks:
        if start > at:
            pieces.append(("", line[at:start]))
        pieces.append((kind, line[start:end]))
        at = end
    if at < len(line):
        pieces.append(("", line[at:]))
    return tuple(pieces)
