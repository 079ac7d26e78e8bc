"""Views for the Build tab."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from torch import Tensor

from components.figures.maps import grid
from components.i18n import spoken, t
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.course.state import BuildState
from components.widgets.chart import chart_data
from components.widgets.sentence import sentence_data
from gpt.course.check import Verdict
from gpt.course.feedback import differs
from gpt.course.step import Words
from gpt.course.steps import STEPS

ROWS, COLUMNS = 16, 24  # size of the window around the first wrong number in a tensor


def wording(words: Words | None) -> str:
    """Return a sentence from the course in Chinese or, for any other language, in English."""
    return "" if words is None else (words.zh if spoken() == "zh" else words.en)


def path(s: Snapshot) -> dict[str, Any]:
    """List the steps, each with its title and whether it is done."""
    state = s.state(BuildState)
    found = {verdict.step.key: verdict.state for verdict in state.verdicts}
    rows = [
        [f"{step.key}  {wording(step.title)}", t(f"build.state.{found.get(step.key, 'open')}")]
        for step in STEPS.values()
    ]
    return {"rows": [[t("build.step"), t("build.state")], *rows]}


def status(s: Snapshot) -> dict[str, Any]:
    state, n = s.state(BuildState), len(STEPS)
    if state.job is not None and state.opening:
        return {"text": t("build.opening")}
    if state.job is not None:
        return {"text": t("build.progress", n=state.n_done, total=n)}
    if not state.verdicts:
        return {"text": ""}
    return {"text": t("build.done" if state.n_done == n else "build.found", n=state.n_done, total=n)}


def notice(s: Snapshot) -> dict[str, Any]:
    return sentence_data(s.state(BuildState).notice)


def test(s: Snapshot) -> dict[str, Any]:
    """Name the next step, or the test that failed."""
    verdict = s.state(BuildState).failed
    if verdict is None or verdict.test is None:
        return {"text": ""}
    title, name = (wording(words) for words in (verdict.step.title, verdict.test.name))
    key = "build.next" if verdict.state == "gap" else "build.failed"
    return {"text": t(key, step=verdict.step.key, title=title, test=name)}


def problem(s: Snapshot) -> dict[str, Any]:
    """Describe the problem, or what to write if the step is still empty."""
    verdict = s.state(BuildState).failed
    if verdict is None:
        return {"text": ""}
    return {"text": wording(verdict.step.says if verdict.state == "gap" else verdict.problem)}


def hint(s: Snapshot) -> dict[str, Any]:
    verdict = s.state(BuildState).failed
    if verdict is None or verdict.hint is None:
        return {"text": ""}
    return {"text": t("build.hint", hint=wording(verdict.hint))}


def printed(s: Snapshot) -> dict[str, Any]:
    verdict = s.state(BuildState).failed
    if verdict is None or not verdict.printed:
        return {"text": ""}
    return {"text": t("build.printed", text=verdict.printed)}


def expected(s: Snapshot) -> dict[str, Any]:
    return map_of(s.state(BuildState).failed, "expected")


def received(s: Snapshot) -> dict[str, Any]:
    return map_of(s.state(BuildState).failed, "received")


def map_of(verdict: Verdict | None, which: Literal["expected", "received"]) -> dict[str, Any]:
    """Show the numbers that a test expected or received, with a frame around the first wrong one."""
    if verdict is None or verdict.test is None:
        return chart_data(None, "")
    expected, received = verdict.expected, verdict.received
    if not isinstance(expected, Tensor) or not isinstance(received, Tensor):
        return chart_data(None, "")
    found = expected if which == "expected" else received
    wrong = wrong_cell(expected, received, verdict.test.tolerance)
    text = t(f"build.{which}.says", shape=tuple(found.shape))
    if not found.dim() or not found.numel():
        return chart_data(None, text)
    cells, first = window(found, wrong)
    parts = [window(each, wrong)[0] for each in (expected, received) if each.dim() and each.numel()]
    figure = grid(
        cells,
        value_title=t(f"build.{which}"),
        x_title=t("build.column"),
        y_title=t("build.row"),
        edge=max(float(np.nanmax(np.abs(part), initial=1e-9)) for part in parts),
        first=first,
        cell=None if wrong is None else ((0, *wrong)[-2], wrong[-1]),
    )
    sliced = t("build.slice", index=list(wrong[:-2])) if wrong and len(wrong) > 2 else ""
    return chart_data(figure, text + sliced)


def wrong_cell(expected: Tensor, received: Tensor, tolerance: float) -> tuple[int, ...] | None:
    """Return the index of the first wrong number, or None if all are right or the shapes differ."""
    if expected.shape != received.shape or expected.dim() == 0:
        return None
    cells = differs(expected, received, tolerance).nonzero()
    return tuple(cells[0].tolist()) if len(cells) else None


def window(values: Tensor, wrong: tuple[int, ...] | None) -> tuple[np.ndarray, tuple[int, int]]:
    """Return a window of ROWS x COLUMNS numbers around a cell of a tensor, by default around the first cell.

    Infinite values become NaN. Also returns the indices of the window's first row and column.
    """
    cell = wrong or (0,) * values.dim()
    plane = values[cell[:-2]] if values.dim() > 2 else values if values.dim() == 2 else values[None]
    place = (cell[-2] if len(cell) > 1 else 0, cell[-1])
    starts = [
        max(0, min(at - n // 2, size - n)) for at, n, size in zip(place, (ROWS, COLUMNS), plane.shape, strict=True)
    ]
    part = plane[starts[0] : starts[0] + ROWS, starts[1] : starts[1] + COLUMNS].float().numpy()
    return np.where(np.isfinite(part), part, np.nan), (starts[0], starts[1])


VIEWS = (
    View("build-path", path),
    View("build-status", status),
    View("build-notice", notice),
    View("build-test", test),
    View("build-problem", problem),
    View("build-hint", hint),
    View("build-expected", expected),
    View("build-received", received),
    View("build-printed", printed),
)
