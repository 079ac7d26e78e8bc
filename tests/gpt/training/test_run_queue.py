"""The queue of live runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gpt.training.live_run import LiveRun
from gpt.training.run_queue import QueueFull, RunQueue
from tests.gpt.training.live_runs import LONG, Gate

pytestmark = pytest.mark.usefixtures("few_examples")


@pytest.fixture
def runs() -> Iterator[list[LiveRun]]:
    """Four runs that have not been started. Each stops at its first batch."""
    runs = [LiveRun(Gate(), LONG) for _ in range(4)]
    yield runs
    for run in runs:
        end(run)


def end(run: LiveRun) -> None:
    run.dataset.open()
    run.close()


def status(queue: RunQueue, runs: list[LiveRun]) -> list[tuple[str, int]]:
    return [(run.state, queue.position(run)) for run in runs]


def test_runs_start_in_the_order_of_their_submission(runs: list[LiveRun]) -> None:
    queue = RunQueue(max_running=2)
    for run in runs:
        queue.submit(run)
    assert status(queue, runs) == [("training", 0), ("training", 0), ("waiting", 1), ("waiting", 2)]
    end(runs[0])
    runs[2].dataset.reach()
    assert status(queue, runs[1:]) == [("training", 0), ("training", 0), ("waiting", 1)]


@pytest.mark.parametrize("leave", [LiveRun.cancel, LiveRun.close])
def test_cancelling_a_waiting_run_advances_those_behind_it(runs: list[LiveRun], leave) -> None:
    queue = RunQueue(max_running=1)
    for run in runs[:3]:
        queue.submit(run)
    leave(runs[1])
    assert status(queue, runs[:3]) == [("training", 0), ("cancelled", 0), ("waiting", 1)]
    end(runs[0])
    runs[2].dataset.reach()
    assert runs[2].state == "training"


def test_a_full_queue_refuses_runs_until_one_leaves_it(runs: list[LiveRun]) -> None:
    queue = RunQueue(max_running=1, max_waiting=2)
    for run in runs[:3]:
        queue.submit(run)
    with pytest.raises(QueueFull, match="2 trainings are waiting already"):
        queue.submit(runs[3])
    runs[1].cancel()
    queue.submit(runs[3])
    assert status(queue, runs[2:]) == [("waiting", 1), ("waiting", 2)]


def test_an_owner_has_part_of_the_queue(runs: list[LiveRun]) -> None:
    queue = RunQueue(max_running=1, max_waiting_of_owner=1)
    for run in runs[:2]:
        queue.submit(run, "a")
    with pytest.raises(QueueFull, match="1 trainings from one address wait"):
        queue.submit(runs[2], "a")
    queue.submit(runs[2], "b")
    assert status(queue, runs[1:3]) == [("waiting", 2), ("waiting", 1)]  # a's first run is training


def test_less_work_goes_first_and_overtakes_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpt.training.run_queue.MAX_OVERTAKEN", 1)
    short = replace(LONG, steps=1)
    runs = [LiveRun(Gate(), recipe) for recipe in (LONG, LONG, short, short)]
    queue = RunQueue(max_running=1)
    for run in runs:
        queue.submit(run)
    assert [queue.position(run) for run in runs] == [0, 3, 1, 2]
    end(runs[0])
    runs[2].dataset.reach()
    assert [queue.position(run) for run in runs] == [0, 1, 0, 2]
    for run in reversed(runs):
        end(run)


def test_closing_ends_all_runs_and_their_threads(runs: list[LiveRun]) -> None:
    queue = RunQueue(max_running=2)
    for run in runs:
        queue.submit(run)
        run.dataset.open()
    threads = [run._thread for run in runs[:2]]
    queue.close()
    assert status(queue, runs) == [("cancelled", 0)] * 4
    assert not any(thread.is_alive() for thread in threads)
