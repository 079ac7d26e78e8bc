"""The learner's folder: the program with gaps, its solution, and the README."""

from __future__ import annotations

import json
from pathlib import Path

from gpt.course.steps import STEPS, Language, Step, Words
from gpt.errors import GPTError

PROGRAM, README, SETTINGS = "my_gpt.py", "README.md", ".course.json"
HEADER = Words(
    '"""My GPT, step by step. Check it with: python -m gpt.course check"""',
    '"""我的 GPT，一步一步写成。检查时运行 python -m gpt.course check"""',
)
IMPORTS = """import json
import math
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F"""


def find_step(key: str) -> Step:
    if key not in STEPS:
        raise GPTError("course.step", step=key, steps=", ".join(STEPS))
    return STEPS[key]


def assemble(parts: list[str], language: Language) -> str:
    """Combine the code of all steps into one program. parts: the code of each step."""
    titles = [f"# {step.key} {step.title.of(language)}" for step in STEPS.values()]
    sections = (f"{title}\n\n\n{part}\n" for title, part in zip(titles, parts, strict=True))
    return "\n\n".join([f"{HEADER.of(language)}\n\n{IMPORTS}\n", *sections])


def solution(language: Language = "en") -> str:
    return assemble([step.solution(language) for step in STEPS.values()], language)


def stub(language: Language = "en") -> str:
    """Return the program with gaps in place of the function bodies."""
    return assemble([step.stub(language) for step in STEPS.values()], language)


def start(folder: Path, language: Language = "en") -> None:
    """Write the learner's folder. Raises ValueError if it already contains a program."""
    if (folder / PROGRAM).exists():
        raise GPTError("course.exists", path=folder / PROGRAM)
    guide = (Path(__file__).parent / f"guide.{language}.md").read_text(encoding="utf-8")
    steps = (f"### {step.key} {step.title.of(language)}\n\n{step.says.of(language)}\n" for step in STEPS.values())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PROGRAM).write_text(stub(language), encoding="utf-8")
    (folder / README).write_text("\n".join([guide, *steps]), encoding="utf-8")
    (folder / SETTINGS).write_text(json.dumps({"language": language}), encoding="utf-8")


def language_of(folder: Path) -> Language:
    """Return the language of a learner's folder. Raises ValueError if it contains no program."""
    if not (folder / PROGRAM).is_file():
        raise GPTError("course.no_program", path=folder / PROGRAM)
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
