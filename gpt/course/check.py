"""Check a learner's program against the reference, and explain what is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import torch
from torch import Tensor

from gpt.course.process import Answer, LearnerProcess, plain, run_lines
from gpt.course.program import solution
from gpt.course.reference import Reference
from gpt.course.steps import Language, Mistake, Step, Test, Words

Job = tuple[Path, Test]
State = Literal["ok", "gap", "wrong"]
MARKS: dict[State, str] = {"ok": "ok", "gap": "-", "wrong": "x"}
HINT = Words("Hint: ", "提示：")
TEST = Words("Test: ", "检查项：")
PRINTED = Words("Your program printed:", "程序的输出：")
SHOWN = 5  # numbers shown per row


@dataclass(frozen=True)
class Verdict:
    """The result of checking one step.

    state: "ok", "gap" for a function that is not written yet, or "wrong".
    test: The failed test. expected, received: The results of this test, if any.
    problem, hint: What is wrong, and how to fix it, in both languages.
    printed: The program's standard output and standard error.
    """

    step: Step
    state: State
    test: Test | None = None
    expected: Any = None
    received: Any = None
    problem: Words | None = None
    hint: Words | None = None
    printed: str = ""


class Checker:
    """Checks programs against the reference model, whose results it computes only once."""

    def __init__(self, reference: Reference | None = None) -> None:
        self.reference = reference or Reference()
        self.inputs: Callable[[Test], dict[str, Any]] = cache(lambda test: test.inputs(self.reference))
        self.expected: Callable[[Test], Any] = cache(lambda test: plain(test.expected(self.reference)))

    def check(
        self, program: Path, steps: Sequence[Step], on_wait: Callable[[], None] = lambda: None
    ) -> Generator[Verdict, None, None]:
        """Yield a verdict for each step, stopping after the first failure. on_wait: see `LearnerProcess.ask`."""
        pairs = [(step, test) for step in steps for test in step.tests]
        with TemporaryDirectory(prefix="glassbox-course-") as folder:
            output = Path(folder) / "printed"
            answers = self.run([(program, test) for _, test in pairs], Path(folder), on_wait)
            for (step, test), answer in zip(pairs, answers, strict=False):
                verdict = self.judge(step, test, answer, output)
                if verdict.state != "ok":
                    answers.close()
                    yield verdict
                    return
                if test is step.tests[-1]:
                    yield verdict

    def run(
        self, jobs: Sequence[Job], folder: Path, on_wait: Callable[[], None] = lambda: None
    ) -> Generator[Answer, None, None]:
        """Run tests in one process and yield the answers. A test that exceeds its time limit ends the process.

        on_wait: see `LearnerProcess.ask`.
        """
        with closing(LearnerProcess(folder)) as process:
            for program, test in jobs:
                answer = process.ask(program, test.run, self.inputs(test), test.seconds, on_wait)
                yield answer
                if answer.get("error") in ("ended", "late"):
                    return

    def judge(self, step: Step, test: Test, answer: Answer, output: Path | None = None) -> Verdict:
        expected, received = self.expected(test), answer.get("result")
        if "error" not in answer and agrees(received, expected, test.tolerance):
            return Verdict(step, "ok")
        printed = output.read_text(encoding="utf-8", errors="replace").strip() if output else ""
        if answer.get("error") == "NotImplementedError":
            key = answer["message"] or step.key
            problem = say("Step {key} is not written yet.", "第 {key} 步还没写。", key=key)
            return Verdict(step, "gap", test, problem=problem, printed=printed)
        problem = error_message(answer) if "error" in answer else difference(expected, received, test.tolerance)
        known = self.recognise(step, test, answer)
        hint = known[0].hint if known else general_hint(expected, answer, test.tolerance)
        return Verdict(step, "wrong", test, expected, received, problem, hint, printed)

    def recognise(self, step: Step, test: Test, answer: Answer) -> list[Mistake]:
        """Return the step's known mistakes that pass all earlier tests and give this answer."""
        if test.is_long or answer.get("error") in ("late", "ended", "SyntaxError", "NameError", "TypeError"):
            return []
        return [
            mistake
            for mistake in step.mistakes
            if same_answer(self.answer_of(step, mistake, test), answer, test.tolerance)
            and self.shows_at(step, mistake) is test
        ]

    def shows_at(self, step: Step, mistake: Mistake) -> Test | None:
        """Return the first of a step's tests that detects a known mistake."""
        for test in step.tests:
            answer = self.answer_of(step, mistake, test)
            if "error" in answer or not agrees(answer["result"], self.expected(test), test.tolerance):
                return test
        return None

    @cache  # noqa: B019 - a checker lives as long as the program
    def answer_of(self, step: Step, mistake: Mistake, test: Test) -> Answer:
        return run_lines(names_with(step, mistake), test.run, self.inputs(test))


def with_mistake(step: Step, mistake: Mistake) -> str:
    """Return the solution with a known mistake in this step's code or in that of an earlier step that it retests."""
    program, code = solution(), step.solution("en")
    place = code if mistake.right in code else program
    return program.replace(place, place.replace(mistake.right, mistake.wrong))


@cache
def names_with(step: Step, mistake: Mistake) -> dict[str, Any]:
    """Run the solution with a known mistake in this process, and return its namespace."""
    names: dict[str, Any] = {"__name__": "__main__"}  # dataclasses look up their module
    exec(compile(with_mistake(step, mistake), "my_gpt.py", "exec"), names)
    return names


def agrees(received: Any, expected: Any, tolerance: float, *, equal_nan: bool = False) -> bool:
    """Return whether two results have the same shape and kind of number, and equal values within the tolerance."""
    if isinstance(received, str) or isinstance(expected, str):
        return bool(received == expected)
    a, b = map(torch.as_tensor, (received, expected))
    if a.shape != b.shape or a.is_floating_point() != b.is_floating_point():
        return False
    return not differs(b, a, tolerance, equal_nan=equal_nan).any()


def same_answer(a: Answer, b: Answer, tolerance: float) -> bool:
    if "error" in a or "error" in b:
        return a.get("error") == b.get("error") and a.get("message") == b.get("message")
    return agrees(a["result"], b["result"], tolerance, equal_nan=True)


def say(en: str, zh: str, **values: object) -> Words:
    return Words(en.format(**values), zh.format(**values))


def error_message(answer: dict[str, Any]) -> Words:
    kind, message, line, code = (answer[name] for name in ("error", "message", "line", "code"))
    if kind == "late":
        return say(
            "Your program ran for more than {seconds} seconds and was stopped. Is there an endless loop?",
            "运行超过 {seconds} 秒，已经停止。是不是有循环停不下来？",
            seconds=message,
        )
    if kind == "ended":
        return Words("Your program exited before it gave a result.", "程序还没给出结果就退出了。")
    if kind == "WrongNames":
        return say(
            "Parameters are missing (-), not in the course (+), or of other shapes (yours != expected):\n{names}",
            "这些参数缺少 (-)、课程里没有 (+)，或者形状不同 (你的 != 期望)：\n{names}",
            names=message,
        )
    if kind == "TypeError" and message.startswith("result: "):
        return say(
            "Your code returned {kind} instead of a tensor or a number. Does the function end with return?",
            "返回的是 {kind}，应该是张量或数。函数末尾写 return 了吗？",
            kind=message.removeprefix("result: "),
        )
    where = say("line {line}, ", "第 {line} 行，", line=line) if line else Words("", "")
    quote = f"\n    {code}" if code else ""
    return Words(f"{where.en}{kind}: {message}{quote}", f"{where.zh}{kind}：{message}{quote}")


def difference(expected: Any, received: Any, tolerance: float) -> Words:
    """Describe the difference between two results: their shapes or types, or the first row that differs."""
    if not isinstance(expected, Tensor) or not isinstance(received, Tensor):
        return say("Expected {a}, got {b}.", "期望 {a}，得到 {b}。", a=numbers(expected), b=numbers(received))
    if expected.shape != received.shape:
        return say(
            "Expected shape {a}, got {b}.", "期望形状 {a}，得到 {b}。", a=tuple(expected.shape), b=tuple(received.shape)
        )
    if expected.is_floating_point() != received.is_floating_point():
        return say(
            "Expected numbers of type {a}, got {b}.",
            "期望的数据类型是 {a}，得到 {b}。",
            a=str(expected.dtype).removeprefix("torch."),
            b=str(received.dtype).removeprefix("torch."),
        )
    if not expected.dim():
        return say("Expected {a}, got {b}.", "期望 {a}，得到 {b}。", a=numbers(expected), b=numbers(received))
    cells = differs(expected, received, tolerance).nonzero().tolist()
    *row, column = cells[0]
    start = max(0, min(column - 1, expected.shape[-1] - SHOWN))
    return say(
        "Shape {shape}; {n} of {total} numbers differ, first at {cell}.\n"
        "    from {begin}: expected {a}\n    {gap}     got      {b}",
        "形状 {shape}；{total} 个数里有 {n} 个不同，第一个在 {cell}。\n"
        "    从 {begin} 起：期望 {a}\n    {gap}      得到 {b}",
        shape=tuple(expected.shape),
        n=f"{len(cells):,}",
        total=f"{expected.numel():,}",
        cell=cells[0],
        begin=[*row, start],
        gap=" " * len(str([*row, start])),
        a=numbers(expected[tuple(row)][start:]),
        b=numbers(received[tuple(row)][start:]),
    )


def differs(expected: Tensor, received: Tensor, tolerance: float, *, equal_nan: bool = False) -> Tensor:
    """Return a mask of the elements at which two tensors of the same shape differ by more than the tolerance.

    A relative difference of 1e-5 is also allowed."""
    return ~torch.isclose(received.double(), expected.double(), rtol=1e-5, atol=tolerance, equal_nan=equal_nan)


def general_hint(expected: Any, answer: dict[str, Any], tolerance: float) -> Words | None:
    """Return a hint based on the kind of difference, for answers that match no known mistake."""
    received = answer.get("result")
    if not isinstance(expected, Tensor) or not isinstance(received, Tensor):
        return None
    if received.shape != expected.shape:
        if sorted(received.shape) == sorted(expected.shape):
            return Words("The axes are in the wrong order: transpose two of them.", "轴的顺序不对，要转置其中两个。")
        return None
    if not received.is_floating_point():
        return None
    if received.isnan().any():
        return Words(
            "The result contains NaN: a division by 0, or a softmax over nothing but -inf.",
            "出现了 NaN：可能除以了 0，或者 softmax 的输入全是 -inf。",
        )
    if not expected.is_floating_point():
        return None
    ratio = float((received * expected).sum() / expected.square().sum())
    if not math.isclose(ratio, 1, rel_tol=1e-4) and torch.allclose(
        received, expected * ratio, rtol=1e-4, atol=tolerance
    ):
        return say(
            "Every number is {ratio:.4g} times the expected one.", "每个数都是期望值的 {ratio:.4g} 倍。", ratio=ratio
        )
    return None


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
    parts = [] if verdict.problem is None else [verdict.problem.of(language)]
    if verdict.state == "gap":
        parts.append(verdict.step.says.of(language))
    elif verdict.test is not None:
        parts[:0] = [
            f"{verdict.step.key} {verdict.step.title.of(language)}, {TEST.of(language)}{verdict.test.name.of(language)}"
        ]
    if verdict.hint is not None:
        parts.append(f"{HINT.of(language)}{verdict.hint.of(language)}")
    if verdict.printed:
        parts.append(f"{PRINTED.of(language)}\n{verdict.printed}")
    return "\n".join(parts)
