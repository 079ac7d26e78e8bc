"""Event handlers for the Build tab."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path

from components.state.admission import admitted
from components.state.adoption import adopt
from components.state.example import first_prompt
from components.state.jobs import Job, in_thread, run_steps
from components.state.session import Session
from components.state.snapshot import Message
from components.tabs.course.state import BuildState
from gpt import Generation, LoadedModel
from gpt.background import Progress
from gpt.course.check import Checker, Verdict
from gpt.course.learner import open_broken, open_program
from gpt.course.program import PROGRAM, language_of
from gpt.course.steps import STEPS
from gpt.inference.threads import threads_for
from gpt.models.registry import add_loaded

MY_GPT = "my-gpt"  # name of the learner's model

checker = cache(Checker)  # the reference model is loaded on first use


def check(course: Path, session: Session) -> Iterator[None]:
    """Check the program in a folder up to the first unfinished step, showing each verdict as soon as it is known."""

    def work(progress: Progress) -> None:
        language_of(course)  # raises if no course has been started
        found: list[Verdict] = []
        with threads_for(0):  # same number of threads as the learner's process, for identical sums
            for verdict in checker().check(
                course / PROGRAM, list(STEPS.values()), lambda: progress(len(found), len(STEPS))
            ):
                found.append(verdict)
                session.change(BuildState, verdicts=tuple(found))

    def steps(job: Job) -> Generator[None]:
        session.change(BuildState, verdicts=(), opening=False)
        yield from in_thread(session, BuildState, job, "build.progress", work)

    yield from run_steps(session, BuildState, steps)


def open_mine(course: Path, session: Session) -> Iterator[None]:
    """Open the learner's program as a model, and keep the current text."""
    yield from open_model(lambda: open_program(MY_GPT, course / PROGRAM, checker().reference), session)


def open_example(name: str, session: Session) -> Iterator[None]:
    """Open a broken variant of the solution as a model, and keep the current text. `name` is a key of `BROKEN`."""
    yield from open_model(lambda: open_broken(name, checker().reference), session)


def open_model(make: Callable[[], LoadedModel], session: Session) -> Iterator[None]:
    """Add a model to the list and open Write with it."""

    def steps(job: Job) -> Generator[None]:
        session.change(BuildState, opening=True)
        loaded = yield from in_thread(session, BuildState, job, "build.opening", lambda _: make())
        text = first_prompt(loaded, session.next_prompt)
        with admitted(session, loaded) as waiting:
            yield from waiting
            document = Generation(loaded, text)
            adopt(session, document, text, Message("build.opened"))
        add_loaded(loaded)
        session.tab = "playground"

    yield from run_steps(session, BuildState, steps)
