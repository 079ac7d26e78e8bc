"""The event handlers of the Build tab."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

from components.state.jobs import Job, in_thread, run_steps
from components.state.session import Session
from components.tabs.course.state import BuildState
from gpt.background import Progress
from gpt.course.check import Checker, Verdict
from gpt.course.program import PROGRAM, language_of
from gpt.course.steps import STEPS
from gpt.inference.threads import threads_for

checker = cache(Checker)  # its reference model is loaded on first use


def check(course: Path, session: Session) -> Iterator[None]:
    """Check the program in a folder up to the first step that is not done; each verdict is shown when it is there."""

    def work(progress: Progress) -> None:
        language_of(course)  # raises where no course was started
        found: list[Verdict] = []
        with threads_for(0):  # the same sums as in the learner's process
            for verdict in checker().check(
                course / PROGRAM, list(STEPS.values()), lambda: progress(len(found), len(STEPS))
            ):
                found.append(verdict)
                session.change(BuildState, verdicts=tuple(found))

    def steps(job: Job) -> Generator[None]:
        session.change(BuildState, verdicts=())
        yield from in_thread(session, BuildState, job, "build.progress", work)

    yield from run_steps(session, BuildState, steps)
