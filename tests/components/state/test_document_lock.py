"""Only one thread changes a document at a time, and a stream never writes after another change was requested."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator

import pytest
import torch

from components.state.document_lock import DocumentLock
from gpt import Generation, SamplingParams
from tests.components.drawing import as_read
from tests.gpt.fake_models import tiny_model

SECONDS = 30  # timeout for something that must happen


def wait_until(lock: DocumentLock, true: Callable[[], bool]) -> None:
    with lock._turns:
        assert lock._turns.wait_for(true, SECONDS)


def test_a_stream_that_lost_its_turn_makes_no_further_step() -> None:
    lock, made = DocumentLock(), []
    steps = lock.steps(lock.begin(), (made.append(n) or n for n in itertools.count()))
    assert [next(steps), next(steps)] == [0, 1]
    lock.take()
    assert list(steps) == []
    assert made == [0, 1]


def test_a_stream_runs_until_it_ends_or_somebody_else_asks() -> None:
    lock = DocumentLock()
    assert not lock.streaming
    first = lock.begin()
    assert lock.streaming
    lock.end(first)
    assert not lock.streaming
    first, second = lock.begin(), lock.begin()
    lock.end(first)  # late, so the second turn continues
    assert lock.streaming
    lock.take()
    assert not lock.streaming
    with lock.writing(second) as mine:
        assert not mine


def test_a_change_waits_for_the_step_that_is_being_made_and_reading_does_not() -> None:
    lock, order = DocumentLock(), []
    within, go_on = threading.Event(), threading.Event()

    def step() -> Iterator[None]:
        within.set()
        assert go_on.wait(SECONDS)
        order.append("step")
        yield

    def change() -> None:
        with lock.changing():
            order.append("change")

    turn = lock.begin()

    def write() -> None:
        list(lock.steps(turn, step()))
        lock.end(turn)

    threads = [threading.Thread(target=write)]
    threads[0].start()
    assert within.wait(SECONDS)
    with lock.reading():
        order.append("read")
    threads.append(threading.Thread(target=change))
    threads[1].start()
    wait_until(lock, lambda: not lock.streaming)  # the change has been requested
    go_on.set()
    for thread in threads:
        thread.join(SECONDS)
    assert order == ["read", "step", "change"]


@pytest.mark.parametrize("seed", range(2))
def test_changes_while_a_stream_writes_leave_a_document_that_equals_its_ids(seed: int) -> None:
    loaded, lock, random_ = tiny_model(block_size=64), DocumentLock(), random.Random(seed)
    document = Generation(loaded, "the cat")
    seen: list[list[int]] = []
    begun = threading.Event()

    def write() -> None:
        turn = lock.begin()
        for _ in lock.steps(turn, document.steps(SamplingParams(seed=seed), 40)):
            begun.set()
        lock.end(turn)

    for _ in range(12):
        begun.clear()
        stream = threading.Thread(target=write)
        stream.start()
        assert begun.wait(SECONDS)
        with lock.changing():
            document.go_back(random_.randrange(len(document.ids)))
            document.append(random_.randrange(200))
            document.read()
            seen.append(list(document.ids))
        stream.join(SECONDS)
        assert document.ids == seen[-1]  # nothing was written after the change
    fresh = as_read(loaded, document.ids)
    torch.testing.assert_close(document.states(), fresh.states(), atol=1e-5, rtol=1e-5)


def test_a_stream_that_rests_ends_its_rest_when_its_turn_is_over() -> None:
    lock = DocumentLock()
    turn = lock.begin()
    lock.rest(turn, 0.01)  # it keeps its turn for as long as requested
    resting = threading.Thread(target=lock.rest, args=(turn, 3600))
    resting.start()
    lock.take()
    resting.join(SECONDS)
    assert not resting.is_alive()
    lock.rest(turn, -1)
