"""Format verdicts as text."""

from __future__ import annotations

from gpt.course.check import State, Verdict
from gpt.course.step import Language, Step, Words

MARKS: dict[State, str] = {"ok": "ok", "gap": "-", "wrong": "x"}
HINT = Words("Hint: ", "提示：")
TEST = Words("Test: ", "检查项：")
PRINTED = Words("Your program printed:", "程序的输出：")


def line(step: Step, state: State, language: Language) -> str:
    """Format a step's line in the table of results."""
    title = step.title.of(language)
    wide = sum(ord(character) > 0x2E80 for character in title)  # wide characters take two columns
    return f"  {step.key:>3} {title:<{34 - wide}} {MARKS[state]}"


def explain(verdict: Verdict, language: Language) -> str:
    """Explain what is wrong with a step."""
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
