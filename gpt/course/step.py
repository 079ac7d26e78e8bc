"""The parts of a course step: its text, code and tests, and the mistakes that it recognises."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from gpt.course.reference import Reference

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
SECONDS = 30.0
DOCSTRING = re.compile(r'"""(.*?)\s*\|\|\s*(.*?)"""', re.DOTALL)


class Words(NamedTuple):
    """A sentence in both languages, with placeholders for `str.format`."""

    en: str
    zh: str

    def of(self, language: Language, **values: object) -> str:
        """Return the sentence in one language."""
        return getattr(self, language).format(**values) if values else getattr(self, language)


@dataclass(frozen=True)
class Test:
    """A comparison of the learner's code with the reference model.

    run: Lines of Python that set `result`. They can use the names in the learner's program, the inputs, `torch`, `nn`
        and `copy_weights` (see `gpt.course.child`). The result is a tensor, a number or a string.
    inputs, expected: Computed by the reference model when the test runs.
    tolerance: Absolute tolerance. A relative difference of 1e-5 is also allowed.
    seconds: Time limit. Known mistakes are recognised only in tests with the default limit.
    """

    __test__ = False  # not a test for pytest
    name: Words
    run: str
    expected: Callable[[Reference], Any]
    inputs: Callable[[Reference], dict[str, Any]] = lambda reference: {}
    tolerance: float = 1e-5
    seconds: float = SECONDS

    @property
    def is_long(self) -> bool:
        """Whether the test has a longer time limit than the default."""
        return self.seconds > SECONDS


@dataclass(frozen=True)
class Mistake:
    """A known mistake: the solution with `wrong` in place of `right`.

    `right` occurs once in the step's code or, if it does not occur there, once in the whole program.
    """

    right: str
    wrong: str
    hint: Words


@dataclass(frozen=True)
class Step:
    """One step of the course.

    key: "1" to "14", with step 6 split into "6a" to "6d".
    says: What to write and why.
    code: The solution. Docstrings contain both languages, "English || 中文".
    """

    key: str
    title: Words
    says: Words
    code: str
    tests: tuple[Test, ...]
    mistakes: tuple[Mistake, ...]

    def solution(self, language: Language) -> str:
        """Return the code with docstrings in one language."""
        return DOCSTRING.sub(rf'"""\{1 + LANGUAGES.index(language)}"""', self.code.strip("\n"))

    def stub(self, language: Language) -> str:
        """Return the solution with gaps instead of the function bodies. Docstrings remain."""
        lines = self.solution(language).split("\n")
        functions = [node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.FunctionDef)]
        for function in sorted(functions, key=lambda node: -node.lineno):
            docstring, last = function.body[0], function.body[-1]
            assert docstring.end_lineno is not None
            assert last.end_lineno is not None
            gap = " " * docstring.col_offset + f'raise NotImplementedError("{self.key}")'
            lines[docstring.end_lineno : last.end_lineno] = [gap]
        return "\n".join(lines)

    @property
    def defines(self) -> set[str]:
        """Names of the functions and classes in the code."""
        body = ast.parse(self.code).body
        return {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}

    @property
    def uses(self) -> set[str]:
        """All names in the code and the tests."""
        texts = (self.code, *(test.run for test in self.tests))
        return {node.id for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
