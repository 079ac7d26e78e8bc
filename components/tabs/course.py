"""The Build tab: checks the learner's own GPT step by step, and opens it as a model."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from components import kit
from components.cards.card import Card
from components.errors import NothingToShow
from components.figures.maps import grid
from components.i18n import spoken, t
from components.parts import Part
from components.state.admission import admitted
from components.state.adoption import adopt
from components.state.example import first_prompt
from components.state.jobs import Job, in_thread, run_steps
from components.state.session import Session
from components.state.snapshot import Message
from components.widgets.chart import Drawing
from components.widgets.simple import table
from gpt import Generation, LoadedModel
from gpt.background import Progress, threads_for
from gpt.course.check import Verdict, differs
from gpt.course.check import check as check_steps
from gpt.course.learner import BROKEN, open_broken, open_program
from gpt.course.steps import PROGRAM, STEPS, Words, language_of
from gpt.models.registry import add_loaded

MY_GPT = "my-gpt"  # name of the learner's model
FOLDER = Path("my-gpt")
OPENS = "8"  # step that completes the GPT
ROWS, COLUMNS = 16, 24  # size of the window around the first wrong number in a tensor

tab = kit.Tab("build")


@tab.state
class BuildState:
    """verdicts: of the last check, up to the first failure. opening: whether the job opens a model, or checks."""

    verdicts: tuple[Verdict, ...] = ()
    opening: bool = False
    job: Job | None = None
    notice: ValueError | None = None

    @property
    def n_done(self) -> int:
        return sum(verdict.state == "ok" for verdict in self.verdicts)

    @property
    def is_gpt(self) -> bool:
        return self.n_done > list(STEPS).index(OPENS)


def check(course: Path, session: Session) -> Iterator[None]:
    """Check the program in a folder up to the first unfinished step, showing each verdict as soon as it is known."""

    def work(progress: Progress) -> None:
        language_of(course)  # raises if no course has been started
        found: list[Verdict] = []
        steps = list(STEPS.values())
        with threads_for(0):  # same number of threads as the learner's process, for identical sums
            for verdict in check_steps(course / PROGRAM, steps, lambda: progress(len(found), len(steps))):
                found.append(verdict)
                session.change(BuildState, verdicts=tuple(found))

    def steps(job: Job) -> Generator[None]:
        session.change(BuildState, verdicts=(), opening=False)
        yield from in_thread(session, BuildState, job, "build.progress", work)

    yield from run_steps(session, BuildState, steps)


def open_model(make: Callable[[], LoadedModel], session: Session) -> Iterator[None]:
    """Open the learner's program or a broken variant of the solution as a model."""

    def steps(job: Job) -> Generator[None]:
        session.change(BuildState, opening=True)
        loaded = yield from in_thread(session, BuildState, job, "build.opening", lambda _: make())
        text = first_prompt(loaded, session.next_prompt)
        with admitted(session, loaded) as waiting:
            yield from waiting
            adopt(session, Generation(loaded, text), text, Message("build.opened"))
        add_loaded(loaded)
        session.tab = "playground"

    yield from run_steps(session, BuildState, steps)


def wording(words: Words | None) -> str:
    """Return a sentence from the course in Chinese or, for any other language, in English."""
    return "" if words is None else (words.zh if spoken() == "zh" else words.en)


def path(s: Any) -> dict[str, Any]:
    found = {verdict.step.key: verdict.state for verdict in s[BuildState].verdicts}
    names = {key: f"{key}  {wording(step.title)}" for key, step in STEPS.items()}
    rows = [[name, t(f"build.state.{found.get(key, 'open')}")] for key, name in names.items()]
    return {"rows": [[t("build.step"), t("build.state")], *rows]}


def status(s: Any) -> str:
    state, n = s[BuildState], len(STEPS)
    if state.job is not None:
        return t("build.opening") if state.opening else t("build.progress", n=state.n_done, total=n)
    if not state.verdicts:
        return ""
    return t("build.done" if state.n_done == n else "build.found", n=state.n_done, total=n)


def failed(s: Any) -> Verdict:
    """Return the verdict of the first unfinished step. Raises NothingToShow if all checked steps are done."""
    for verdict in s[BuildState].verdicts:
        if verdict.state != "ok":
            return verdict
    raise NothingToShow


def test(s: Any) -> str:
    verdict = failed(s)
    if verdict.test is None:
        return ""
    key = "build.next" if verdict.state == "gap" else "build.failed"
    return t(key, step=verdict.step.key, title=wording(verdict.step.title), test=wording(verdict.test.name))


def problem(s: Any) -> str:
    verdict = failed(s)
    return wording(verdict.step.says if verdict.state == "gap" else verdict.problem)


def hint(s: Any) -> str:
    found = failed(s).hint
    return "" if found is None else t("build.hint", hint=wording(found))


def printed(s: Any) -> str:
    text = failed(s).printed
    return t("build.printed", text=text) if text else ""


def numbers(which: Literal["expected", "received"], s: Any) -> Drawing:
    """Show the numbers that a test expected or received, with a frame around the first wrong one."""
    verdict = failed(s)
    expected, received = verdict.expected, verdict.received
    if verdict.test is None or not isinstance(expected, Tensor) or not isinstance(received, Tensor):
        return None
    found = expected if which == "expected" else received
    wrong = wrong_cell(expected, received, verdict.test.tolerance)
    text = t(f"build.{which}.says", shape=tuple(found.shape))
    if not found.dim() or not found.numel():
        return None, text
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
    return figure, text + (t("build.slice", index=list(wrong[:-2])) if wrong and len(wrong) > 2 else "")


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


def open_button(
    name: str, label: str, make: Callable[[], LoadedModel], needs: Callable[[Any], bool] = lambda s: True
) -> Part:
    def enabled(s: Any) -> bool:
        return s[BuildState].job is None and needs(s)

    return kit.button(name, label, partial(open_model, make), queue="experiment", enabled=enabled)


def cards(folder: Path | None) -> list[Callable[[], Card]]:
    """Return the tab's cards. folder: contains the learner's program.

    It is None on pages that other people can open, because the program would run on this machine.
    """
    intro = kit.question("build.question"), kit.lead("build.lead")
    lines = [f"python -m gpt.course {command} {folder or FOLDER}" for command in ("start", "watch")]
    commands = kit.code_text("build-commands", "build.commands", lambda s: "\n".join(lines))
    if folder is None:
        return [kit.card("build", *intro, kit.lead("build.elsewhere"), commands)]
    found = kit.column(
        kit.says("build-test", test, kind="question"),
        kit.says("build-problem", problem),
        kit.says("build-hint", hint),
        kit.columns(
            kit.column(kit.picture("build-expected", partial(numbers, "expected")), min_width=240),
            kit.column(kit.picture("build-received", partial(numbers, "received")), min_width=240),
        ),
        kit.says("build-printed", printed, kind="caption"),
        grow=2,
    )
    start, mine = partial(check, folder), partial(open_program, MY_GPT, folder / PROGRAM)
    options: dict[str, Any] = {"queue": "experiment", "primary": True, "answer": "build-path"}
    check_card = kit.card(
        "build",
        *intro,
        kit.caption("build.file", folder=folder),
        kit.job_buttons("build", "build.check", start, BuildState, **options),
        kit.caption("build.check.says"),
        kit.says("build-status", status, kind="status"),
        kit.says("build-notice", lambda s: s[BuildState].notice, kind="notice"),
        kit.columns(kit.column(table("build-path", words_from=1, draw=path), min_width=260), found),
        kit.row(open_button("build-open", "build.open", mine, lambda s: s[BuildState].is_gpt)),
        kit.caption("build.open.says"),
        commands,
    )
    broken = [open_button(f"build-{name}", f"build.broken.{name}", partial(open_broken, name)) for name in BROKEN]
    question, says = kit.question("build.broken.question"), kit.lead("build.broken.says")
    return [check_card, kit.card("build-broken", question, says, kit.row(*broken, classes="gb-small"))]
