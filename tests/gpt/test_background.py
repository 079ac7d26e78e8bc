"""Functions in background threads: progress, result or error, cancellation, priority."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any

import pytest
import torch

from gpt.background import NICENESS, Cancelled, Progress, lower_priority, run_with_progress

TIMEOUT = 60  # seconds before a test gives up


def pair(done: int, total: int) -> tuple[int, int]:
    return done, total


def finish(generator: Generator[Any, None, Any]) -> tuple[list[Any], Any]:
    """Return the remaining items of a generator and its return value."""
    yielded = []
    while True:
        try:
            yielded.append(next(generator))
        except StopIteration as stop:
            return yielded, stop.value


def test_the_latest_progress_is_shown_until_the_work_ends() -> None:
    may_report, reported, may_end = (threading.Event() for _ in range(3))

    def work(progress: Progress) -> str:
        assert may_report.wait(TIMEOUT)
        progress(1, 3)
        progress(2, 3)
        reported.set()
        assert may_end.wait(TIMEOUT)
        return "result"

    running = run_with_progress(work, pair, interval=0)
    assert next(running) == (0, 0)
    may_report.set()
    assert reported.wait(TIMEOUT)
    assert [next(running), next(running)] == [(2, 3), (2, 3)]
    may_end.set()
    shown, result = finish(running)
    assert (set(shown) | {(2, 3)}, result) == ({(2, 3)}, "result")


def test_closing_cancels_the_work_at_its_next_report() -> None:
    closed, seen = threading.Event(), Future[type[BaseException]]()

    def work(progress: Progress) -> None:
        assert closed.wait(TIMEOUT)
        try:
            progress(1, 2)
        except BaseException as error:
            seen.set_result(type(error))
            raise

    running = run_with_progress(work, pair, interval=0)
    next(running)
    running.close()
    closed.set()
    assert seen.result(TIMEOUT) is Cancelled


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError("no"), SystemExit(1)])
def test_an_error_of_the_work_is_raised_where_its_result_is_awaited(error: BaseException) -> None:
    def work(progress: Progress) -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        next(run_with_progress(work, pair, interval=TIMEOUT))
    assert raised.value is error


def test_a_low_priority_thread_takes_one_core_and_leaves_the_settings_of_others() -> None:
    def in_thread(action: Callable[[], None] = lambda: None) -> list[int]:
        seen: list[int] = []

        def look() -> None:
            action()
            seen.append(torch.get_num_threads())
            if sys.platform == "linux":
                seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        return seen

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        usual, lowered = in_thread(), in_thread(lower_priority)
        assert lowered[0] == 1
        if sys.platform == "linux":
            assert lowered[1] == max(usual[1], NICENESS)
        assert torch.get_num_threads() == 2
        assert in_thread() == usual
    finally:
        torch.set_num_threads(before)
