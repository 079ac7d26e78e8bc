"""The steps of the course, which steps.md defines, and the learner's folder."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from gpt.errors import require

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
SECONDS = 30.0
FOLDER = Path(__file__).parent
PROGRAM, README, SETTINGS = "my_gpt.py", "README.md", ".course.json"
IMPORTS = """import json
import math
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F"""
DOCSTRING = re.compile(r'"""(.*?)\s*\|\|\s*(.*?)"""', re.DOTALL)
FENCE = re.compile(r"```\w+\n(.*?)\n```\n(.*?)\n", re.DOTALL)  # code, and the line after it


class Words(NamedTuple):
    """A sentence in both languages."""

    en: str
    zh: str

    def of(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en


SENTENCES: dict[str, list[str]] = json.loads((FOLDER / "words.json").read_text(encoding="utf-8"))


def say(key: str, /, **values: object) -> Words:
    """Return a sentence of words.json with values for its placeholders."""
    return Words(*(sentence.format(**values) for sentence in SENTENCES[key]))


@dataclass(frozen=True)
class Test:
    """A comparison of the learner's code with the solution.

    run: Lines of Python that set `result` to a tensor, a number or a string. They can use the names in the program, the
        inputs in `gpt.course.reference`, `torch`, `nn` and `copy_weights` (see `gpt.course.process`).
    expected: Name of the input that is the expected result; by default, the solution computes it.
    tolerance: Absolute tolerance. A relative difference of 1e-5 is also allowed.
    seconds: Time limit. Known mistakes are recognised only in tests with the default limit.
    """

    __test__ = False  # not a test for pytest
    name: Words
    run: str
    expected: str = ""
    tolerance: float = 1e-5
    seconds: float = SECONDS

    @property
    def is_long(self) -> bool:
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
        return DOCSTRING.sub(rf'"""\{1 + LANGUAGES.index(language)}"""', self.code.strip("\n"))

    def stub(self, language: Language) -> str:
        """Return the solution with gaps instead of the function bodies. Docstrings remain."""
        lines = self.solution(language).split("\n")
        functions = [node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.FunctionDef)]
        for function in sorted(functions, key=lambda node: -node.lineno):
            docstring, last = function.body[0], function.body[-1]
            gap = " " * docstring.col_offset + f'raise NotImplementedError("{self.key}")'
            lines[docstring.end_lineno : last.end_lineno] = [gap]
        return "\n".join(lines)

    @property
    def defines(self) -> set[str]:
        body = ast.parse(self.code).body
        return {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}

    @property
    def uses(self) -> set[str]:
        return names_in("\n".join([self.code, *(test.run for test in self.tests)]))


def words(text: str) -> Words:
    return Words(*(part.strip() for part in text.split("||")))


def names_in(code: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}


def read_steps(text: str) -> dict[str, Step]:
    steps = {}
    for part in re.split(r"^# (?=\d)", text, flags=re.MULTILINE)[1:]:
        heading, says, rest = part.split("\n\n", 2)
        key, title = heading.split(" ", 1)
        (code, _), (tests, _), *edits = FENCE.findall(rest)
        mistakes = []
        for lines, hint in edits:
            right, wrong = ("\n".join(re.findall(rf"^[{sign}](.*)", lines, re.MULTILINE)) for sign in "-+")
            mistakes.append(Mistake(right, wrong, words(hint)))
        found = tuple(map(read_test, re.split(r"^## ", tests, flags=re.MULTILINE)[1:]))
        steps[key] = Step(key, words(title), words(says), code, found, tuple(mistakes))
    return steps


def read_test(text: str) -> Test:
    heading, run = text.rstrip().split("\n", 1)
    en, zh, *settings = heading.split(" || ")
    return Test(Words(en, zh), run, **(json.loads(settings[0]) if settings else {}))


STEPS = read_steps((FOLDER / "steps.md").read_text(encoding="utf-8"))


def find_step(key: str) -> Step:
    require(key in STEPS, "course.step", step=key, steps=", ".join(STEPS))
    return STEPS[key]


def assemble(part: Callable[[Step, Language], str], language: Language) -> str:
    """Combine the code of all steps into one program. part: returns the code of a step."""
    sections = [f"# {step.key} {step.title.of(language)}\n\n\n{part(step, language)}\n" for step in STEPS.values()]
    return "\n\n".join([say("header").of(language), f"{IMPORTS}\n", *sections])


def solution(language: Language = "en") -> str:
    return assemble(Step.solution, language)


def start(folder: Path, language: Language = "en") -> None:
    """Write the learner's folder. Raises ValueError if it already contains a program."""
    require(not (folder / PROGRAM).exists(), "course.exists", path=folder / PROGRAM)
    guide = (FOLDER / f"guide.{language}.md").read_text(encoding="utf-8")
    steps = (f"### {step.key} {step.title.of(language)}\n\n{step.says.of(language)}\n" for step in STEPS.values())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PROGRAM).write_text(assemble(Step.stub, language), encoding="utf-8")
    (folder / README).write_text("\n".join([guide, *steps]), encoding="utf-8")
    (folder / SETTINGS).write_text(json.dumps({"language": language}), encoding="utf-8")


def language_of(folder: Path) -> Language:
    """Return the language of a learner's folder. Raises ValueError if it contains no program."""
    require((folder / PROGRAM).is_file(), "course.no_program", path=folder / PROGRAM)
    settings = folder / SETTINGS
    return json.loads(settings.read_text(encoding="utf-8"))["language"] if settings.is_file() else "en"


def steps_before(step: Step) -> list[Step]:
    """Return the steps that a step builds on, in order, followed by the step itself."""
    found: list[Step] = []
    names = step.defines
    for other in reversed(STEPS.values()):
        if other.defines & names:
            names |= other.uses
            found.insert(0, other)
    return found
