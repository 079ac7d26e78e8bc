"""Experiments that a person starts and stops: state, buttons and event handlers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from components.parts import Part, run_buttons
from components.state.session import Session
from components.state.snapshot import Snapshot
from gpt.background import run_with_progress
from gpt.inference.threads import SMALL_WORK, threads_for

T = TypeVar("T")
UPDATE_SECONDS = 0.25  # time between two frames while an experiment runs


@dataclass(frozen=True, eq=False)
class Experiment(Generic[T]):
    """An experiment's state. latest: its newest result; id: identifies the active run, or None if there is none."""

    latest: T | None = None
    id: object | None = None
    problem: ValueError | None = None

    @property
    def running(self) -> bool:
        return self.id is not None


def experiment_buttons(
    name: str, label: str, state: type, steps: Callable[[Snapshot], Iterator[Any]], *, small: bool = True
) -> Part:
    """Return the buttons that start and stop `run_steps`. Only one experiment runs at a time across all visitors.

    label: catalogue key of the Start button; state: a dataclass with a field `run` of type `Experiment`.
    """

    def running(s: Snapshot) -> bool:
        return s.state(state).run.running

    start, stop = partial(run_steps, state, steps, small), partial(stop_run, state)
    return run_buttons(name, label, start, stop, running, queue="experiment")


def run_steps(state: type, steps: Callable[[Snapshot], Iterator[Any]], small: bool, session: Session) -> Iterator[None]:
    """Run an experiment in its own thread and store each result in `run.latest`. small: use one core."""
    run_id = object()
    session.change(state, run=Experiment(id=run_id))
    yield
    with session.lock.reading():
        results = steps(session.snapshot())

    def is_active() -> bool:
        return session.state(state).run.id is run_id

    def work(progress: Callable[[int, int], None]) -> None:
        with threads_for(0 if small else SMALL_WORK):
            for latest in results:
                if is_active():
                    session.change(state, run=Experiment(latest, run_id))
                progress(0, 0)

    problem: ValueError | None = None
    try:
        with closing(run_with_progress(work, lambda done, total: None, interval=UPDATE_SECONDS)) as waiting:
            for _ in waiting:
                if not is_active():
                    return
                yield
    except ValueError as error:
        problem = error
    finally:
        if is_active():
            session.change(state, run=Experiment(session.state(state).run.latest, problem=problem))


def stop_run(state: type, session: Session) -> None:
    """Stop the experiment and keep its latest result."""
    run: Experiment[Any] = session.state(state).run
    session.change(state, run=Experiment(run.latest, problem=run.problem))


def time_limited(results: Iterator[T], seconds: float) -> Iterator[T]:
    """Yield results until the time is up, but at least one."""
    end = time.monotonic() + seconds
    for result in results:
        yield result
        if time.monotonic() > end:
            return
