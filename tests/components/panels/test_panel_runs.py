"""Panel experiments that take seconds: shown while they run, stopped, failed."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from components.panels import masks, positions
from components.panels.experiment import Experiment, run_steps, stop_run
from components.panels.masks import MasksState
from components.panels.positions import PositionsState
from components.state.session import Session
from components.state.snapshot import Snapshot

RUNS = [
    (MasksState, masks),
    (PositionsState, positions),
]


@pytest.mark.parametrize(("state", "module"), RUNS, ids=["masks", "positions"])
def test_an_experiment_is_shown_while_it_runs_and_what_it_found_stays_when_it_is_stopped(
    session: Session, state: Any, module: Any
) -> None:
    steps = getattr(module, "measure", None) or module.train
    stopped = Event()

    def endless(s: Snapshot) -> Iterator[Any]:
        """Yield the first result repeatedly, so that the run cannot end by itself."""
        first = next(steps(s))
        while not stopped.wait(0.01):
            yield first

    running = run_steps(state, endless, True, session)
    next(running)
    assert session.state(state).run.running
    while session.state(state).run.latest is None:
        next(running)
    stop_run(state, session)
    assert list(running) == []
    stopped.set()
    run = session.state(state).run
    assert not run.running
    assert run.latest is not None
    for session.language in ("en", "zh"):
        views = {view.name: view.draw(session.snapshot()) for view in module.VIEWS}
        (chart,) = (views[name] for name in views if name.rpartition("-")[2] in ("losses", "beyond"))
        assert chart["figure"] is not None


def test_an_older_run_ends_without_touching_the_one_that_was_started_after_it(session: Session) -> None:
    older = run_steps(MasksState, masks.train, True, session)
    next(older)
    newer = Experiment(id=object())
    session.change(MasksState, run=newer)
    assert list(older) == []
    assert session.state(MasksState).run is newer
