"""The course: its solution passes, each known mistake is named, and the command line supports both languages."""

from __future__ import annotations

import ast
import math
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gpt.course import reference
from gpt.course.check import Verdict, agrees, check, effect, expected_of, judge, with_mistake
from gpt.course.command_line import main
from gpt.course.process import LearnerProcess, run_lines
from gpt.course.steps import LANGUAGES, PROGRAM, README, STEPS, Step, Test, Words, assemble, solution, steps_before
from gpt.experiments.initialisation import shortcut_gradients
from gpt.experiments.layers import linear_relu_rows, normalise
from gpt.experiments.shapes import UNTIED_124M, count_parameters
from gpt.generate import generate_greedy
from gpt.layers import GELU
from gpt.sampling import SamplingParams, distribution

MISTAKES = [(step, mistake) for step in STEPS.values() for mistake in step.mistakes]


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    """Return the verdict on each of MISTAKES, which run in this process."""
    return [judge(step, *effect(step, mistake)) for step, mistake in MISTAKES]


@pytest.mark.thorough
def test_a_mistake_is_recognised_in_the_learners_process(tmp_path: Path) -> None:
    with closing(LearnerProcess()) as process:
        for step in STEPS.values():
            test, _ = effect(step, step.mistakes[0])
            path = tmp_path / f"{step.key}.py"
            path.write_text(with_mistake(step, step.mistakes[0]), encoding="utf-8")
            answer = process.ask(path, test.run, reference.inputs(test.run), test.seconds)
            assert judge(step, test, answer).hint == step.mistakes[0].hint


@pytest.mark.thorough
def test_each_mistake_gets_its_hint_and_no_other(verdicts: list[Verdict]) -> None:
    wrong = [
        (step.key, mistake.hint.en, None if verdict.hint is None else verdict.hint.en)
        for (step, mistake), verdict in zip(MISTAKES, verdicts, strict=True)
        if verdict.hint != mistake.hint
    ]
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.thorough
def test_the_solution_passes_every_test_but_that_of_a_long_text(tmp_path: Path) -> None:
    path = tmp_path / PROGRAM
    path.write_text(solution(), encoding="utf-8")
    steps = [replace(step, tests=tuple(test for test in step.tests if not test.is_long)) for step in STEPS.values()]
    verdicts = list(check(path, steps))
    assert [(verdict.step.key, verdict.state) for verdict in verdicts] == [(key, "ok") for key in STEPS]


def test_the_solution_gives_the_numbers_of_the_app_and_of_the_original_experiments() -> None:
    model, short = reference.bundled().model, reference.short()
    idx, rows = reference.idx()[:2], linear_relu_rows(seed=123)
    error = short.loss(idx[:, :-1], idx[:, 1:])
    (gradient,) = torch.autograd.grad(error, [short.h[0].ln_1.weight])
    expected = {
        ("3", 0): normalise(rows)["after"],
        ("4", 0): GELU("tanh").formula(torch.linspace(-6, 6, 1000)),
        ("6a", 0): reference.layer().resid_pre.cumsum(1) / torch.arange(1, 1 + idx.shape[1])[:, None],
        ("7", 0): torch.tensor(shortcut_gradients(seed=123)),
        ("8", 1): model(reference.idx()).detach(),
        ("9", 0): count_parameters(replace(UNTIED_124M, tie_weights=False)),
        ("9", 1): count_parameters(replace(UNTIED_124M, tie_weights=True)),
        ("10", 0): math.log(20),
        ("10", 1): torch.cat([error.detach()[None], gradient]),
        ("11", 1): generate_greedy(short, idx[:, :5], 10),
        ("12", 2): distribution(reference.logits(), SamplingParams(temperature=0.8, top_k=5)).final,
        ("13", 0): model(idx).detach(),
        ("13", 1): short(idx).detach(),
    }
    for (key, number), value in expected.items():
        test = STEPS[key].tests[number]
        assert agrees(expected_of(test), value, test.tolerance), test.name.en


def test_the_solution_is_short() -> None:
    tree = ast.parse(solution())
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            del node.body[0]
    assert len(ast.unparse(tree).replace("\n\n", "\n").split("\n")) <= 150


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_function_of_the_stub_has_a_description_and_a_gap(language: str) -> None:
    for node in ast.walk(ast.parse(assemble(Step.stub, language))):
        if isinstance(node, ast.FunctionDef):
            assert ast.get_docstring(node)
            assert isinstance(node.body[1], ast.Raise)
            assert len(node.body) == 2
    assert "||" not in assemble(Step.stub, language)


def test_a_step_builds_on_those_whose_names_it_uses() -> None:
    assert [step.key for step in steps_before(STEPS["7"])] == ["1", "3", "4", "5", "6b", "6c", "6d", "7"]
    assert [step.key for step in steps_before(STEPS["4"])] == ["4"]


FAILURES = (
    ("def gelu(x):\n    raise NotImplementedError('4')", "gap", "Step 4 is not written yet."),
    ("def gelu(x):\n    pass", "wrong", "Your code returned NoneType instead of a tensor"),
    ("def gelu(x):\n    return y", "wrong", "line 2, NameError: name 'y' is not defined\n    return y"),
    ("def gelu(x)\n    return x", "wrong", "line 1, SyntaxError"),
    ("print('hello')\ndef gelu(x):\n    return x[:-1]", "wrong", "Expected shape (1000,), got (999,)."),
    (
        "import sys\nours = [name for name in sys.modules if name.split('.')[0] == 'gpt']\n1 / len(ours)",
        "wrong",
        "Zero",
    ),
    ("import os\nos._exit(3)", "wrong", "Your program exited"),
)


def test_a_program_that_fails_gets_a_sentence(tmp_path: Path) -> None:
    test = STEPS["4"].tests[0]
    with closing(LearnerProcess()) as process:
        for number, (program, state, problem) in enumerate(FAILURES):
            path = tmp_path / f"program{number}.py"
            path.write_text(program, encoding="utf-8")
            verdict = judge(STEPS["4"], test, process.ask(path, test.run, {}, test.seconds))
            assert verdict.state == state
            assert verdict.problem is not None
            assert problem in verdict.problem.en


def test_a_loop_without_end_is_stopped(tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text("while True:\n    pass", encoding="utf-8")
    endless = Test(Words("", ""), "result = 1", seconds=0.1)
    step = Step("1", Words("", ""), Words("", ""), "", (endless,), ())
    (verdict,) = check(tmp_path / PROGRAM, [step])
    assert verdict.problem is not None
    assert "more than 0.1 seconds" in verdict.problem.en


def test_the_answer_of_an_interrupted_job_is_not_taken_for_the_next(tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text("from time import sleep")

    def interrupt() -> None:
        if (tmp_path / "running").exists():
            raise KeyboardInterrupt

    with closing(LearnerProcess(interrupt)) as process:
        running = f"open({str(tmp_path / 'running')!r}, 'w').close()"
        with pytest.raises(KeyboardInterrupt):
            process.ask(tmp_path / PROGRAM, f"{running}; sleep(0.2); result = 1", {}, 10)
        (tmp_path / "running").unlink()
        assert process.ask(tmp_path / PROGRAM, "sleep(0.1); result = 2", {}, 10) == {"result": 2}


def test_names_of_parameters_that_differ_are_listed() -> None:
    names = {"__name__": "__main__"}
    exec(solution().replace("self.c_proj", "self.back"), names)
    test = STEPS["5"].tests[0]
    verdict = judge(STEPS["5"], test, run_lines(names, test.run, reference.inputs(test.run)))
    assert verdict.problem is not None
    assert verdict.problem.en.splitlines()[1:] == ["- c_proj.weight", "- c_proj.bias", "+ back.weight", "+ back.bias"]


@pytest.mark.thorough
def test_a_folder_is_started_in_a_language_and_checked_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["start", str(tmp_path), "--language", "zh"]) == 0
    assert "# 自己动手写一个 GPT" in (tmp_path / README).read_text(encoding="utf-8")
    with (tmp_path / PROGRAM).open("a", encoding="utf-8") as program:
        program.write('\nprint("hello")\n')
    assert main(["check", str(tmp_path), "4"]) == 1
    printed = capsys.readouterr().out
    assert "第 4 步还没写。" in printed
    assert "程序的输出：\nhello" in printed
    assert main(["start", str(tmp_path)]) == 1
    assert "exists: choose another folder" in capsys.readouterr().err


def test_a_solution_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solution", "4"]) == 0
    assert "0.044715" in capsys.readouterr().out
    assert main(["solution", "15"]) == 1
    assert "there is no step 15" in capsys.readouterr().err
