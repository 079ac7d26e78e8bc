"""Long work that says how far it is and can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, TimeoutError
from typing import Any, TypeVar

from gpt.background import Progress

Values = dict[Any, Any]
T = TypeVar("T")
QUIET_SECONDS = 0.3  # until a person is told, and between two words


class _Stopped(Exception):
    """Nobody waits for the result any more."""


def watched(work: Callable[[Progress], T], told: Callable[[int, int], Values]) -> Generator[Values, None, T]:
    """What `work` returns, in a thread of its own; told: what the page says of (parts done, parts there are).

    Closing the generator ends the work at its next word of progress. What the work raises is raised here.
    """
    place, stop, task = [0, 0], threading.Event(), Future[T]()

    def progress(done: int, total: int) -> None:
        if stop.is_set():
            raise _Stopped
        place[:] = done, total

    def run() -> None:
        try:
            task.set_result(work(progress))
        except Exception as problem:  # of another thread: raised again in this one
            task.set_exception(problem)

    threading.Thread(target=run, daemon=True).start()
    try:
        while True:
            try:
                return task.result(timeout=QUIET_SECONDS)
            except TimeoutError:
                if place[1]:  # nothing is known before the first part
                    yield told(*place)
    finally:
        stop.set()
