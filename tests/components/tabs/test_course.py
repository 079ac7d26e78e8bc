"""The Build tab checks a program and shows its mistakes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from components.state.example import example, opening
from components.state.session import Session
from components.tabs.course import MY_GPT, BuildState, cards, check, open_model, tab, window, wrong_cell
from components.tabs.playground.generation import write_prompt
from components.text_views import model_choices
from gpt import get_model, list_models
from gpt.course.check import with_mistake
from gpt.course.learner import open_broken, open_program
from gpt.course.steps import PROGRAM, STEPS, solution
from gpt.models.registry import remove_model
from tests.components.drawing import Drawn


def shown(session: Session) -> dict[str, dict[str, Any]]:
    session.sent.clear()
    return Drawn(session, tab, *cards(Path("my-gpt"))).update()


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A session whose program lacks the scaling of scores and everything after step 6c."""
    folder, session, step = tmp_path_factory.mktemp("course"), Session(None), STEPS["6b"]
    mistake = next(each for each in step.mistakes if "sqrt" in each.right)
    (folder / PROGRAM).write_text(with_mistake(step, mistake), encoding="utf-8")
    list(check(folder, session))
    return session


def test_the_first_step_that_fails_is_shown_with_its_hint(failed: Session) -> None:
    state, views = failed.state(BuildState), shown(failed)
    unfinished = next(verdict for verdict in state.verdicts if verdict.state != "ok")
    assert unfinished.step.key == "6b"
    assert [row[1] for row in views["build-path"]["rows"]].count("✓ done") == state.n_done == 6
    assert views["build-test"]["text"].startswith("6b Attention")
    assert unfinished.hint is not None
    assert views["build-hint"]["text"] == f"Hint: {unfinished.hint.en}"


def test_a_window_of_a_large_tensor_has_the_wrong_cell() -> None:
    expected = torch.zeros(2, 3, 100, 200)
    received = expected.clone()
    received[1, 2, 90, 199] = 7
    wrong = wrong_cell(expected, received, 1e-5)
    assert wrong == (1, 2, 90, 199)
    cells, (row, column) = window(received, wrong)
    assert cells[90 - row, 199 - column] == 7
    assert wrong_cell(expected, received[0], 1e-5) is None


def test_a_folder_without_a_program_gets_a_sentence(tmp_path: Path) -> None:
    session = Session(None)
    list(check(tmp_path, session))
    assert "begin with python -m gpt.course start" in shown(session)["build-notice"]["text"]


def test_stop_ends_the_process_of_a_program_that_never_ends(tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text(f"{solution()}\nwhile True:\n    pass\n", encoding="utf-8")
    session = Session(None)
    running = check(tmp_path, session)
    for _ in range(3):
        next(running)
    job = session.state(BuildState).job
    assert job is not None
    job.stopped.set()
    assert len(list(running)) <= 2
    assert session.state(BuildState).job is None


@pytest.mark.thorough
def test_a_broken_gpt_is_opened_and_writes() -> None:
    session = opening(example(get_model())).copy()
    session.settings = replace(session.settings, length=3)
    try:
        list(open_model(partial(open_broken, "no-residual"), session))
        assert session.state(BuildState).notice is None
        assert (session.model, session.tab) == ("no-residual", "playground")
        assert ("Without shortcuts · the course's GPT, broken", "no-residual") in model_choices()
        list(write_prompt(session))
        assert session.document is not None
        assert session.document.loaded.name == "no-residual"
        assert len(session.document.ids) > session.document.n_prompt
    finally:
        remove_model("no-residual")


@pytest.mark.thorough
def test_a_program_that_fails_is_not_opened_and_says_why(tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text("1 / 0", encoding="utf-8")
    session = Session(None)
    list(open_model(partial(open_program, MY_GPT, tmp_path / PROGRAM), session))
    assert shown(session)["build-notice"]["text"] == "Your GPT: line 1, ZeroDivisionError: division by zero\n    1 / 0"
    assert MY_GPT not in list_models()
