"""Work that a person starts and can stop. While it runs, it is stored in a state's field."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, TypeVar

from components.state.session import Session
from components.state.snapshot import Message, Snapshot
from gpt.background import SMALL_WORK, Cancelled, Progress, run_with_progress, threads_for

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Job:
    """Work in progress. stopped: set to end it; it identifies the job, which is replaced when its progress changes."""

    progress: Message | None = None
    stopped: Event = field(default_factory=Event)

    def rest(self, seconds: float) -> bool:
        """Wait some seconds, or less if the job is stopped. Returns whether it goes on."""
        return not self.stopped.wait(seconds)


@contextmanager
def started(session: Session, state: Any) -> Iterator[Job]:
    """Run the `with` block as the job in the state's field `job`, stopping any previous job."""
    stop(state, session)
    job = Job()
    session.change(state, job=job)
    session.jobs.add(job.stopped)
    try:
        yield job
    finally:
        session.jobs.discard(job.stopped)
        now: Job | None = session.state(state).job
        if now is not None and now.stopped is job.stopped:
            session.change(state, job=None)


def stop(state: Any, session: Session) -> None:
    job: Job | None = session.state(state).job
    if job is not None:
        job.stopped.set()
        session.change(state, job=None)


def run_steps(
    session: Session, state: Any, steps: Callable[[Job], Generator[None]], *, problem: str | None = "notice"
) -> Iterator[None]:
    """Run steps as a state's job until they end or the job is stopped. problem: the field for an error, or None."""
    if problem is not None:
        session.change(state, **{problem: None})
    try:
        with started(session, state) as job, closing(steps(job)) as running:
            yield
            for _ in running:
                yield
                if job.stopped.is_set():
                    return
    except Cancelled:
        return
    except ValueError as error:
        if problem is None:
            raise
        session.change(state, **{problem: error})


def in_thread(
    session: Session, state: Any, job: Job, key: str, work: Callable[[Progress], T]
) -> Generator[None, None, T]:
    """Run `work` in a thread as part of a job and return its result. Raises Cancelled if the job is stopped.

    key: catalogue key of the progress message, which has the values `n` and `total`.
    """

    def show(done: int, total: int) -> None:
        if job.stopped.is_set():
            raise Cancelled
        if total:
            session.change(state, job=replace(job, progress=Message(key, {"n": done, "total": total})))

    result = yield from run_with_progress(work, show)
    if job.stopped.is_set():
        raise Cancelled
    return result


def run_results(
    state: Any, results: Callable[[Snapshot], Iterator[Any]], session: Session, *, small: bool = True
) -> Iterator[None]:
    """Run an experiment as a state's job in a thread, and store each of its results in the field `latest`.

    If it is stopped, its latest result stays. small: use one core.
    """
    found = results(session.snapshot())

    def steps(job: Job) -> Generator[None]:
        def work(progress: Progress) -> None:
            with threads_for(0 if small else SMALL_WORK):
                for latest in found:
                    progress(0, 0)
                    if job.stopped.is_set():
                        return
                    session.change(state, latest=latest)

        yield from in_thread(session, state, job, "", work)

    session.change(state, latest=None)
    yield from run_steps(session, state, steps)


def time_limited(results: Iterator[T], seconds: float) -> Iterator[T]:
    """Yield results until the time is up, but at least one."""
    end = time.monotonic() + seconds
    for result in results:
        yield result
        if time.monotonic() > end:
            return
