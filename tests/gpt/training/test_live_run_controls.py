"""Controls of a live run: pause, time limit, learning rate, cancel, close."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpt.models.registry import get_model
from gpt.training.live_run import LiveRun
from gpt.training.tasks import TASKS, TaskDataset
from tests.gpt.training.live_runs import LONG, TIMEOUT, Gate, finished

pytestmark = pytest.mark.usefixtures("few_examples")


@pytest.fixture
def gated() -> Iterator[tuple[Gate, LiveRun]]:
    """A run that waits for the test's permission at its first batch."""
    gate = Gate()
    run = LiveRun(gate, LONG)
    run.start()
    gate.reach()
    yield gate, run
    gate.open()
    run.close()


def test_a_paused_run_makes_no_update_until_it_is_resumed(gated: tuple[Gate, LiveRun]) -> None:
    gate, run = gated
    gate.let(2)
    run.pause()
    run.pause()
    assert (run.state, run.progress.step) == ("paused", 2)
    run.resume()
    gate.let(1)
    assert (run.state, run.progress.step) == ("training", 3)


def test_a_pause_lasts_until_the_time_limit_at_most(gated: tuple[Gate, LiveRun]) -> None:
    gate, run = gated
    gate.let(2)
    run.pause()
    run.time_limit_seconds = run.progress.seconds + 0.2
    gate.open()
    assert run.wait(TIMEOUT)
    assert (run.state, run.progress.step) == ("finished", 3)  # the current update was still completed
    assert 0 < run.progress.paused_seconds <= run.progress.seconds


def test_a_run_at_its_time_limit_finishes_with_its_current_weights() -> None:
    run = LiveRun(TaskDataset(TASKS["add"]), LONG, time_limit_seconds=0.0)
    run.start()
    assert run.wait(TIMEOUT)
    assert (run.state, run.progress.step, run.progress.steps) == ("finished", 0, 5000)
    assert run.loaded.model.config.n_embd == 8


def test_a_rate_factor_applies_from_the_next_update(gated: tuple[Gate, LiveRun]) -> None:
    gate, run = gated
    gate.let(3)
    run.set_rate_factor(0.5)
    gate.let(2)
    rates = [point.rate for point in run.progress.losses]
    expected = [LONG.muon_lr * LONG.lr_factor(step) for step in range(5)]
    assert rates[:3] == expected[:3]
    assert rates[4] == expected[4] / 2
    assert run.progress.rate_factor == 0.5
    for factor in (-1, 101, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"multiplied by 0 to 100, not {factor:g}"):
            run.set_rate_factor(factor)


@pytest.mark.parametrize("paused", [False, True])
def test_a_cancelled_run_stops_after_the_current_update_and_leaves_no_model(
    gated: tuple[Gate, LiveRun], paused: bool
) -> None:
    gate, run = gated
    gate.let(1)
    if paused:
        run.pause()
    run.cancel()
    assert run.wait(0)
    for use in (lambda: run.loaded, lambda: run.save("nowhere"), run.register):
        with pytest.raises(
            ValueError, match="this training run is cancelled: its model is available when it has finished"
        ):
            use()
    run.resume()
    assert not run.start()
    gate.open()
    run._thread.join(TIMEOUT)
    assert (run.state, run.progress.step) == ("cancelled", 2)
    assert not gate.requested.acquire(blocking=False)


def test_closing_frees_the_model_and_its_name_and_can_be_repeated(tmp_path: Path) -> None:
    run = finished()
    name, model = run.register(), weakref.ref(run.loaded.model)
    for _ in range(2):
        run.close()
        assert (run.state, run.progress.losses, run.progress.evaluations) == ("cancelled", (), ())
        assert run.registered_name is None
        with pytest.raises(ValueError, match="there is no model"):
            get_model(name)
        for use in (lambda: run.loaded, lambda: run.write_archive(tmp_path), run.register):
            with pytest.raises(ValueError, match="this training run is cancelled"):
                use()
        assert not run.start()
    gc.collect()
    assert model() is None


@pytest.mark.parametrize("paused", [False, True])
def test_closing_ends_the_thread_of_a_run(gated: tuple[Gate, LiveRun], paused: bool) -> None:
    gate, run = gated
    gate.let(1)
    if paused:
        run.pause()
    gate.open()
    run.close()
    assert not run._thread.is_alive()
    assert run.state == "cancelled"
