"""Experiments that run for seconds: shown while they run, stopped, started again."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from components.panels import masks, positions
from components.state.jobs import run_results, stop
from components.state.session import Session
from tests.components.panels.panel_session import drawn


@pytest.mark.parametrize(("module", "chart"), [(masks, "masks-losses"), (positions, "positions-beyond")])
def test_an_experiment_is_shown_while_it_runs_and_what_it_found_stays_when_it_is_stopped(
    session: Session, module: Any, chart: str
) -> None:
    ended = Event()

    def endless(s: Any) -> Iterator[Any]:
        """Yield the first result repeatedly, so that the run cannot end by itself."""
        first = next(module.train(s))
        while not ended.wait(0.01):
            yield first

    state, panel = module.Chosen, drawn(session, module.panel.name)
    running = run_results(state, endless, session)
    next(running)
    assert session.busy
    while session.state(state).latest is None:
        next(running)
    stop(state, session)
    assert list(running) == []
    ended.set()
    assert not session.busy
    for session.language in ("en", "zh"):
        assert panel.update()[chart]["figure"] is not None


def test_an_older_run_ends_without_touching_the_one_that_was_started_after_it(session: Session) -> None:
    older, newer = (run_results(masks.Chosen, lambda s, n=n: iter([n]), session) for n in (1, 2))
    next(older)
    next(newer)
    assert list(older) == []
    list(newer)
    assert session.state(masks.Chosen).latest == 2
