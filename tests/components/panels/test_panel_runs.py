"""Panel experiments that take seconds: shown while they run, stopped, failed."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from components.panels import kernels, layer_times, masks, positions
from components.panels.experiment import Experiment, run_steps, stop_run
from components.panels.kernels import KernelsState
from components.panels.layer_times import LayerTimesState, Measured
from components.panels.masks import MasksState
from components.panels.positions import PositionsState
from components.state.session import Session
from components.state.snapshot import Snapshot
from gpt.experiments.speed import LayerTimes
from tests.components.panels.panel_session import notice, shown, y_of

RUNS = [
    (KernelsState, kernels),
    (LayerTimesState, layer_times),
    (MasksState, masks),
    (PositionsState, positions),
]


@pytest.mark.parametrize(("state", "module"), RUNS, ids=["kernels", "layer_times", "masks", "positions"])
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
        (chart,) = (views[name] for name in views if name.rpartition("-")[2] in ("measured", "losses", "beyond"))
        assert chart["figure"] is not None
    session.loaded = None  # another model is being loaded
    if state in (KernelsState, LayerTimesState):  # times of a model
        views = {view.name: view.draw(session.snapshot()) for view in module.VIEWS}
        assert next(views[name] for name in views if name.endswith("-measured"))["figure"] is None


def test_layer_times_are_medians_of_the_passes_and_their_quartiles(session: Session) -> None:
    usual = LayerTimes(0.001, (0.002, 0.003), (0.004, 0.006), 0.004)
    slow = LayerTimes(0.001, (0.102, 0.003), (0.004, 0.006), 0.004)
    session.change(LayerTimesState, run=Experiment(Measured(session.loaded, 12, (usual, usual, slow, usual, usual))))
    found = {view.name: view.draw(session.snapshot()) for view in layer_times.VIEWS}
    attention, feed_forward, ends, quartiles = y_of(found["layers-measured"])
    assert attention.tolist() == pytest.approx([0, 2, 3, 0])
    assert feed_forward.tolist() == pytest.approx([0, 4, 6, 0])
    assert ends.tolist() == pytest.approx([1, 0, 0, 4])
    for end in quartiles.reshape(4, 3)[:, :2].T:
        assert end.tolist() == pytest.approx([1, 6, 9, 4])
    says = found["layers-answer"]["text"]
    assert "(12 tokens)" in says
    assert "takes 20 ms" in says
    assert "of 5 passes so far. The fastest pass took 20 ms and the slowest 120 ms" in says
    assert "The feed-forward layers take 50% of that, attention 25%, the head 20% and the embedding 5%" in says


def test_an_experiment_that_fails_says_why_and_may_be_started_again() -> None:
    session = Session(None)
    list(run_steps(KernelsState, kernels.measure, True, session))
    assert not session.state(KernelsState).busy
    assert notice(shown(session, "kernels"), "kernels")


def test_an_older_run_ends_without_touching_the_one_that_was_started_after_it(session: Session) -> None:
    older = run_steps(MasksState, masks.train, True, session)
    next(older)
    newer = Experiment(id=object())
    session.change(MasksState, run=newer)
    assert list(older) == []
    assert session.state(MasksState).run is newer
