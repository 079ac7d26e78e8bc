"""A document is changed by one at a time, and a stream never writes after somebody else has asked."""

from __future__ import annotations

import copy
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import torch

from components.state.document_lock import DocumentLock
from gpt import Generation, SamplingParams
from tests.gpt.fake_models import tiny_model

SECONDS = 30  # until something that must happen counts as forgotten


def wait_until(true: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < SECONDS
        time.sleep(0.001)


def test_a_stream_that_lost_its_turn_makes_no_further_step() -> None:
    turns, made = DocumentLock(), []
    steps = turns.steps(turns.begin(), (made.append(n) or n for n in itertools.count()))
    assert [next(steps), next(steps)] == [0, 1]
    turns.take()
    assert list(steps) == []
    assert made == [0, 1]


def test_the_newest_stream_is_the_one_that_writes() -> None:
    turns = DocumentLock()
    first = turns.steps(turns.begin(), iter("ab"))
    assert next(first) == "a"
    second = turns.steps(turns.begin(), iter("xy"))
    assert list(first) == []
    assert list(second) == ["x", "y"]


def test_a_stream_runs_until_it_ends_or_somebody_else_asks() -> None:
    turns = DocumentLock()
    assert not turns.streaming
    first = turns.begin()
    assert turns.streaming
    turns.end(first)
    assert not turns.streaming
    first, second = turns.begin(), turns.begin()
    turns.end(first)  # late: the second one goes on
    assert turns.streaming
    turns.take()
    assert not turns.streaming
    with turns.writing(second) as mine:
        assert not mine


def test_a_change_waits_for_the_step_that_is_being_made_and_looking_does_not() -> None:
    turns, order = DocumentLock(), []
    within, go_on = threading.Event(), threading.Event()

    def step() -> Iterator[None]:
        within.set()
        assert go_on.wait(SECONDS)
        order.append("step")
        yield

    def change() -> None:
        with turns.changing():
            order.append("change")

    turn = turns.begin()

    def write() -> None:
        list(turns.steps(turn, step()))
        turns.end(turn)

    threads = [threading.Thread(target=write)]
    threads[0].start()
    assert within.wait(SECONDS)
    with turns.looking():
        order.append("look")
    threads.append(threading.Thread(target=change))
    threads[1].start()
    wait_until(lambda: not turns.streaming)  # the change has asked
    go_on.set()
    for thread in threads:
        thread.join(SECONDS)
    assert order == ["look", "step", "change"]


def test_what_a_change_shows_comes_after_the_last_words_of_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.state.document_lock.MAX_STREAM_WAIT_SECONDS", SECONDS)
    turns, order = DocumentLock(), []

    def change() -> None:
        with turns.changing():
            order.append("change")

    turn = turns.begin()
    thread = threading.Thread(target=change)
    thread.start()
    wait_until(lambda: not turns.streaming)  # the change has asked, when a step was made and not yet sent
    order.append("last words")
    turns.end(turn)
    thread.join(SECONDS)
    assert order == ["last words", "change"]


def test_a_change_that_waited_also_stops_a_stream_that_began_meanwhile() -> None:
    turns = DocumentLock()
    with turns.settling():
        change = threading.Thread(target=lambda: turns.changing().__enter__())
        before = turns._number
        change.start()
        wait_until(lambda: turns._number > before)  # the change waits
        late = turns.begin()
    change.join(SECONDS)
    assert not turns.streaming
    assert turns._number > late


def test_visitors_have_turns_of_their_own() -> None:
    turns = DocumentLock()
    turns.begin()
    assert not copy.deepcopy(turns).streaming


@pytest.mark.parametrize("seed", range(2))
def test_changes_while_a_stream_writes_leave_a_document_that_equals_its_ids(seed: int) -> None:
    loaded, turns, random_ = tiny_model(block_size=64), DocumentLock(), random.Random(seed)
    document = Generation(loaded, "the cat")
    seen: list[list[int]] = []
    begun = threading.Event()

    def write() -> None:
        turn = turns.begin()
        for _ in turns.steps(turn, document.steps(SamplingParams(seed=seed), 40)):
            begun.set()
        turns.end(turn)

    for _ in range(12):
        begun.clear()
        stream = threading.Thread(target=write)
        stream.start()
        assert begun.wait(SECONDS)
        with turns.changing():
            document.go_back(random_.randrange(len(document.ids)))
            document.append(random_.randrange(200))
            document.read()
            seen.append(list(document.ids))
        stream.join(SECONDS)
        assert document.ids == seen[-1]  # nothing was written after the change
    fresh = Generation(loaded, document.ids)
    fresh.read()
    torch.testing.assert_close(document.states(), fresh.states(), atol=1e-5, rtol=1e-5)


def test_a_stream_that_rests_ends_its_rest_when_its_turn_is_over() -> None:
    turns = DocumentLock()
    turn = turns.begin()
    turns.rest(turn, 0.01)  # with its turn, as long as it was asked to
    resting = threading.Thread(target=turns.rest, args=(turn, 3600))
    resting.start()
    turns.take()
    resting.join(SECONDS)
    assert not resting.is_alive()
    turns.rest(turn, -1)
