"""Check a learner's program against the solution, and explain what is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from gpt.course.process import Answer, LearnerProcess, run_lines
from gpt.course.reference import INPUTS, inputs
from gpt.course.steps import Language, Mistake, Step, Test, Words, say, solution

State = Literal["ok", "gap", "wrong"]
MARKS: dict[State, str] = {"ok": "ok", "gap": "-", "wrong": "x"}
SHOWN = 5  # numbers shown per row
OWN_ERRORS = ("late", "ended", "WrongNames", "WrongType")
GENERAL_ERRORS = ("late", "ended", "WrongType", "SyntaxError", "NameError", "TypeError")  # have many causes


@dataclass(frozen=True)
class Verdict:
    """The result of checking one step.

    state: "ok", "gap" for a function that is not written yet, or "wrong".
    test: The failed test. expected, received: The results of this test, if any.
    problem, hint: What is wrong, and how to fix it, in both languages.
    printed: The program's standard output and standard error, if the step is not "ok".
    """

    step: Step
    state: State
    test: Test | None = None
    expected: Any = None
    received: Any = None
    problem: Words | None = None
    hint: Words | None = None
    printed: str = ""


def check(program: Path, steps: Sequence[Step], on_wait: Callable[[], None] = lambda: None) -> Iterator[Verdict]:
    """Run the tests in one process, and yield a verdict for each step up to the first failure.

    on_wait: see `LearnerProcess`.
    """
    with closing(LearnerProcess(on_wait)) as process:

        def answer(test: Test) -> Answer:
            return process.ask(program, test.run, inputs(test.run), test.seconds)

        for step in steps:
            verdict = judge_step(step, answer)
            if verdict.state != "ok":
                yield replace(verdict, printed=process.printed())
                return
            yield verdict


def judge_step(step: Step, answer: Callable[[Test], Answer]) -> Verdict:
    """Return the verdict on the answers to a step's tests, up to the first that is wrong."""
    verdicts = (judge(step, test, answer(test)) for test in step.tests)
    return next((verdict for verdict in verdicts if verdict.state != "ok"), Verdict(step, "ok"))


def judge(step: Step, test: Test, answer: Answer) -> Verdict:
    if passes(test, answer):
        return Verdict(step, "ok")
    if answer.get("error") == "NotImplementedError":
        return Verdict(step, "gap", test, problem=say("not_written", key=answer["message"] or step.key))
    expected, received = expected_of(test), answer.get("result")
    problem = error_message(answer) if "error" in answer else difference(expected, received, test.tolerance)
    known = () if test.is_long or answer.get("error") in GENERAL_ERRORS else step.mistakes
    hint = next((mistake.hint for mistake in known if explains(step, mistake, test, answer)), None)
    hint = hint or general_hint(expected, received, test.tolerance)
    return Verdict(step, "wrong", test, expected, received, problem, hint)


def explains(step: Step, mistake: Mistake, test: Test, answer: Answer) -> bool:
    """Return whether a known mistake passes all earlier tests and gives this answer."""
    failed, shown = effect(step, mistake)
    if failed is not test:
        return False
    if "error" in shown or "error" in answer:
        return all(shown.get(name) == answer.get(name) for name in ("error", "message"))
    return agrees(shown["result"], answer["result"], test.tolerance, equal_nan=True)


def effect(step: Step, mistake: Mistake) -> tuple[Test, Answer]:
    """Return the first of a step's tests that detects a known mistake, and its answer."""
    answers = ((test, answer_of(test, step, mistake)) for test in step.tests)
    return next((test, answer) for test, answer in answers if not passes(test, answer))


def passes(test: Test, answer: Answer) -> bool:
    return "error" not in answer and agrees(answer["result"], expected_of(test), test.tolerance)


def expected_of(test: Test) -> Any:
    return INPUTS[test.expected]() if test.expected else answer_of(test)["result"]


@cache
def answer_of(test: Test, step: Step | None = None, mistake: Mistake | None = None) -> Answer:
    """Run a test on the solution in this process, possibly with a step's known mistake."""
    names: dict[str, Any] = {"__name__": "__main__"}  # dataclasses look up their module
    exec(compile(with_mistake(step, mistake) if step and mistake else solution(), "my_gpt.py", "exec"), names)
    return run_lines(names, test.run, inputs(test.run))


def with_mistake(step: Step, mistake: Mistake) -> str:
    """Return the solution with a known mistake in this step's code or in that of an earlier step that it retests."""
    program, code = solution(), step.solution("en")
    place = code if mistake.right in code else program
    return program.replace(place, place.replace(mistake.right, mistake.wrong))


def agrees(received: Any, expected: Any, tolerance: float, *, equal_nan: bool = False) -> bool:
    """Return whether two results have the same shape and kind of number, and equal values within the tolerance."""
    if isinstance(received, str) or isinstance(expected, str):
        return bool(received == expected)
    a, b = map(torch.as_tensor, (received, expected))
    if a.shape != b.shape or a.is_floating_point() != b.is_floating_point():
        return False
    return not differs(b, a, tolerance, equal_nan=equal_nan).any()


def error_message(answer: dict[str, Any]) -> Words:
    kind, message, line, code = (answer[name] for name in ("error", "message", "line", "code"))
    if kind in OWN_ERRORS:
        return say(kind, message=message)
    quote = f"\n    {code}" if code else ""
    return say("raised_at" if line else "raised", line=line, kind=kind, message=message, quote=quote)


def difference(expected: Any, received: Any, tolerance: float) -> Words:
    """Describe the difference between two results: their shapes or types, or the first row that differs."""
    a, b = expected, received
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.shape != b.shape:
            return say("shape", a=tuple(a.shape), b=tuple(b.shape))
        if a.is_floating_point() != b.is_floating_point():
            types = [str(each.dtype).removeprefix("torch.") for each in (a, b)]
            return say("type", a=types[0], b=types[1])
        if a.dim():
            cells = differs(a, b, tolerance).nonzero().tolist()
            *row, column = cells[0]
            start = max(0, min(column - 1, a.shape[-1] - SHOWN))
            begin = [*row, start]
            gap = " " * len(str(begin))
            a_row, b_row = (numbers(each[tuple(row)][start:]) for each in (a, b))
            counts = {"shape": tuple(a.shape), "n": len(cells), "total": a.numel()}
            return say("difference", **counts, cell=cells[0], begin=begin, gap=gap, a=a_row, b=b_row)
    return say("expected", a=numbers(a), b=numbers(b))


def differs(expected: Tensor, received: Tensor, tolerance: float, *, equal_nan: bool = False) -> Tensor:
    """Return a mask of the elements at which two tensors of the same shape differ by more than the tolerance.

    A relative difference of 1e-5 is also allowed."""
    return ~torch.isclose(received.double(), expected.double(), rtol=1e-5, atol=tolerance, equal_nan=equal_nan)


def general_hint(expected: Any, received: Any, tolerance: float) -> Words | None:
    """Return a hint based on the kind of difference, for results that match no known mistake."""
    if not isinstance(expected, Tensor) or not isinstance(received, Tensor):
        return None
    if received.shape != expected.shape:
        return say("axes") if sorted(received.shape) == sorted(expected.shape) else None
    if received.isnan().any():
        return say("nan")
    a, b = expected.double(), received.double()
    ratio = float((a * b).sum() / a.square().sum())
    is_multiple = torch.allclose(b, a * ratio, rtol=1e-4, atol=tolerance)
    return say("ratio", ratio=ratio) if is_multiple and not math.isclose(ratio, 1, rel_tol=1e-4) else None


def numbers(values: Any) -> str:
    """Format a few numbers of a tensor with four decimal places, and any other result as Python does."""
    if not isinstance(values, Tensor):
        return repr(values)
    row = values.flatten()[:SHOWN].tolist()
    if not values.is_floating_point():
        return "  ".join(map(str, row))
    return "  ".join(f"{number:.4g}" if abs(number) < 1e-3 else f"{number:.4f}" for number in row)


def line(step: Step, state: State, language: Language) -> str:
    title = step.title.of(language)
    wide = sum(ord(character) > 0x2E80 for character in title)  # wide characters take two columns
    return f"  {step.key:>3} {title:<{34 - wide}} {MARKS[state]}"


def explain(verdict: Verdict, language: Language) -> str:
    step, test, problem = verdict.step, verdict.test, verdict.problem
    assert test is not None
    assert problem is not None
    if verdict.state == "gap":
        parts = [problem, step.says]
    else:
        title = f"{step.key} {step.title.of(language)}"
        parts = [say("test", step=title, test=test.name.of(language)), problem]
    if verdict.hint is not None:
        parts.append(say("hint", hint=verdict.hint.of(language)))
    if verdict.printed:
        parts.append(say("printed", text=verdict.printed))
    return "\n".join(part.of(language) for part in parts)
