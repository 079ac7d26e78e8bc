"""Who may train: one run for each person, so many at a time, the others in their order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpt.training.live_run import LiveRun
from gpt.training.run_queue import LiveQueue
from gpt.training.tasks import TASKS, TaskMaterial
from tests.gpt.test_live_training import LONG, PATIENCE, TINY, Gate


@pytest.fixture
def gates() -> Iterator[list[Gate]]:
    """Every gate that a test makes; opened at its end."""
    made: list[Gate] = []
    yield made
    for gate in made:
        gate.given.release()


def endless(gates: list[Gate]) -> LiveRun:
    """A run that goes on until it is cancelled."""
    gates.append(Gate())
    return LiveRun(gates[-1], LONG)


def end(queue: LiveQueue, owner: str, gate: Gate) -> None:
    """Call a run off and let its thread end."""
    run = queue.run(owner)
    queue.leave(owner)
    gate.given.release()
    assert run.wait(PATIENCE)


def states(queue: LiveQueue, owners: str) -> list[tuple[str, int]]:
    found = [queue.progress(owner) for owner in owners]
    return [(progress.state, progress.place) for progress in found]


def test_runs_begin_in_the_order_they_came(gates: list[Gate]) -> None:
    queue = LiveQueue(at_once=2)
    for owner in "abcd":
        queue.submit(owner, endless(gates))
    assert states(queue, "abcd") == [("training", 0), ("training", 0), ("waiting", 1), ("waiting", 2)]
    end(queue, "a", gates[0])
    gates[2].reach()
    assert states(queue, "bcd") == [("training", 0), ("training", 0), ("waiting", 1)]
    for owner, gate in zip("bcd", gates[1:], strict=True):
        end(queue, owner, gate)
    assert queue.progress("a") is queue.run("a") is None


def test_a_person_has_one_run_at_a_time(gates: list[Gate]) -> None:
    queue = LiveQueue(at_once=1)
    queue.submit("a", endless(gates))
    with pytest.raises(ValueError, match="one training at a time"):
        queue.submit("a", endless(gates))
    queue.run("a").pause()
    with pytest.raises(ValueError, match="one training at a time"):
        queue.submit("a", endless(gates))
    end(queue, "a", gates[0])
    queue.submit("a", endless(gates))
    gates[-1].reach()
    end(queue, "a", gates[-1])


def test_a_run_that_is_over_stays_until_the_next_one(gates: list[Gate]) -> None:
    queue = LiveQueue(at_once=1)
    run = LiveRun(TaskMaterial(TASKS["add"]), TINY)
    queue.submit("a", run)
    assert run.wait(PATIENCE)
    assert queue.run("a") is run
    assert queue.progress("a").state == "finished"
    following = endless(gates)
    queue.submit("a", following)
    assert queue.run("a") is following
    gates[0].reach()
    end(queue, "a", gates[0])


def test_who_leaves_the_queue_lets_the_others_move_up(gates: list[Gate]) -> None:
    queue = LiveQueue(at_once=1)
    for owner in "abc":
        queue.submit(owner, endless(gates))
    waited = queue.run("b")
    queue.leave("b")
    queue.leave("nobody")
    assert waited.state == "cancelled"
    assert states(queue, "ac") == [("training", 0), ("waiting", 1)]
    queue.run("c").cancel()  # by itself, without leaving
    end(queue, "a", gates[0])
    queue.submit("d", endless(gates))
    gates[-1].reach()
    assert states(queue, "cd") == [("cancelled", 0), ("training", 0)]
    end(queue, "d", gates[-1])


def test_a_full_queue_refuses(gates: list[Gate]) -> None:
    queue = LiveQueue(at_once=1, longest=2)
    for owner in "abc":
        queue.submit(owner, endless(gates))
    with pytest.raises(ValueError, match="2 trainings are waiting already"):
        queue.submit("d", endless(gates))
    assert queue.run("d") is None
    for owner, gate in zip("cba", reversed(gates[:3]), strict=True):
        end(queue, owner, gate)


def test_only_so_many_that_are_over_are_kept() -> None:
    queue = LiveQueue(at_once=1, kept=2)
    for owner in "abcd":
        run = LiveRun(TaskMaterial(TASKS["add"]), TINY)
        run.cancel()
        queue.submit(owner, run)
    assert [queue.run(owner) is not None for owner in "abcd"] == [False, False, True, True]


def test_there_is_always_room_for_one() -> None:
    assert LiveQueue().at_once >= 1
