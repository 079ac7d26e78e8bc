"""The course as a notebook: the committed files match the steps, and their cells run."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from gpt.course.command_line import main
from gpt.course.notebook import notebook
from gpt.course.steps import STEPS, Language, Step

pytestmark = pytest.mark.thorough

FOLDER = Path(__file__).parents[3] / "docs" / "course"


def test_the_committed_notebooks_are_those_of_the_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["notebooks", str(tmp_path)]) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert {path.name for path in written} == {path.name for path in FOLDER.glob("*.ipynb")}
    for path in written:
        assert path.read_text(encoding="utf-8") == (FOLDER / path.name).read_text(encoding="utf-8"), (
            "run python -m gpt.course notebooks docs/course"
        )


def test_a_notebook_runs_in_a_kernel_and_shows_gaps_hints_and_lines() -> None:
    def part(step: Step, language: Language) -> str:
        if step.key == "3":
            return step.solution(language).replace("unbiased=False", "unbiased=True")
        return "def gelu(x):\n    return nothing" if step.key == "4" else step.stub(language)

    document = nbformat.reads(json.dumps(notebook("en", part)), as_version=4)
    NotebookClient(document, allow_errors=True, resources={"metadata": {"path": FOLDER}}).execute()
    cells = [cell for cell in document.cells if cell.cell_type == "code"]
    found = {cell.source: cell.outputs[0].get("text") for cell in cells if cell.outputs}
    assert "2 Embeddings" in found['check("2")']
    assert found['check("2")'].endswith("-\n")
    assert "Use unbiased=False." in found['check("3")']
    assert "line 2, NameError: name 'nothing' is not defined\n    return nothing" in found['check("4")']
    assert cells[-1].outputs[0].ename == "NotImplementedError"
    assert all(f'check("{key}")' in found for key in STEPS)
