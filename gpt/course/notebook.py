"""The course as a notebook, and the checks for its cells."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from gpt.course.check import explain, judge_step, line
from gpt.course.process import run_lines
from gpt.course.reference import inputs
from gpt.course.steps import IMPORTS, LANGUAGES, STEPS, Language, Step, find_step, say

NAME = "my_gpt.{language}.ipynb"
SETUP = """import sys

sys.path.append("../..")  # {where}

{imports}

from gpt import load_model
from gpt.course.notebook import checks
from gpt.models.sources import BUNDLED

check = checks(globals(), "{language}")"""
WRITE = """tokenizer = load_model(BUNDLED).tokenizer
text = torch.tensor([tokenizer.encode("Once upon a time")])
print(tokenizer.decode(generate(load(BUNDLED), text, 40)[0].tolist()))"""


def notebook(language: Language, part: Callable[[Step, Language], str] = Step.stub) -> dict[str, Any]:
    """Return a notebook with all steps, in format 4.5.

    part: returns the code for a step's cell; defaults to its stub.
    """
    setup = SETUP.format(where=say("notebook.where").of(language), imports=IMPORTS, language=language)
    cells = [cell("markdown", say("notebook.introduction").of(language)), cell("code", setup)]
    summary = say("notebook.solution").of(language)
    for step in STEPS.values():
        answer = f"```python\n{step.solution(language)}\n```"
        cells += [
            cell("markdown", f"## {step.key} {step.title.of(language)}\n\n{step.says.of(language)}"),
            cell("code", part(step, language)),
            cell("code", f'check("{step.key}")'),
            cell("markdown", f"<details><summary>{summary}</summary>\n\n{answer}\n\n</details>"),
        ]
    cells += [cell("markdown", say("notebook.end").of(language)), cell("code", WRITE)]
    return {
        "cells": [each | {"id": f"cell-{number}"} for number, each in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def cell(kind: str, text: str) -> dict[str, Any]:
    outputs: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True), **outputs}


def write_notebooks(folder: Path) -> list[Path]:
    """Write a notebook in each language, formatted the way Jupyter does, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for language in LANGUAGES:
        paths.append(folder / NAME.format(language=language))
        text = json.dumps(notebook(language), ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        paths[-1].write_text(text, encoding="utf-8", newline="\n")
    return paths


def checks(names: dict[str, Any], language: Language = "en") -> Callable[[str], None]:
    """Return a function that takes a step's key, checks the step in this process, and prints the verdict.

    names: the notebook's namespace, `globals()`.
    """

    def check(key: str) -> None:
        step = find_step(key)
        path = cell_of(step, names)
        verdict = judge_step(step, lambda test: run_lines(names, test.run, deepcopy(inputs(test.run)), path))
        print(line(step, verdict.state, language))
        if verdict.state == "wrong":
            print(f"\n{explain(verdict, language)}")

    return check


def cell_of(step: Step, names: dict[str, Any]) -> str:
    """Return Python's file name for the cell that defines a step's functions, or "" if none does."""
    for value in (names[name] for name in step.defines if name in names):
        for function in (value, *vars(value).values()):
            if inspect.isfunction(function):
                return inspect.unwrap(function).__code__.co_filename
    return ""
