"""Functions in background threads: progress reports, cancellation and scheduling priority."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from typing import TypeVar

import torch

Progress = Callable[[int, int], None]  # parts or bytes done, and in total
REPORT_SECONDS = 0.3  # between two reports, and before the first
NICENESS = 10  # of 19, added by `lower_priority`

T = TypeVar("T")
Shown = TypeVar("Shown")


class Cancelled(Exception):
    """Raised by a call of `progress` after the generator that waits for the result was closed."""


def run_with_progress(
    work: Callable[[Progress], T], show: Callable[[int, int], Shown], *, interval: float = REPORT_SECONDS
) -> Generator[Shown, None, T]:
    """Run `work(progress)` in a new thread: `result = yield from run_with_progress(work, show)`.

    Every `interval` seconds until the work ends, the generator yields `show(done, total)` of its latest
    `progress(done, total)`, both 0 before the first; work that ends sooner yields nothing. Then it returns what the
    work returned, or raises what it raised. Closing it cancels the work: its next call of `progress` raises Cancelled.
    """
    latest, closed, result = (0, 0), threading.Event(), Future[T]()

    def progress(done: int, total: int) -> None:
        nonlocal latest
        if closed.is_set():
            raise Cancelled
        latest = done, total

    def run() -> None:
        try:
            result.set_result(work(progress))
        except BaseException as error:  # raised again in the waiting thread
            result.set_exception(error)

    threading.Thread(target=run, name="run_with_progress", daemon=True).start()
    try:
        while not wait([result], timeout=interval).done:
            yield show(*latest)
        return result.result()
    finally:
        closed.set()


def lower_priority() -> None:
    """Let the calling thread compute on one core and, on Linux, at a lower scheduling priority, until it ends.

    torch.set_num_threads also sets the number for all threads that compute for the first time after it: another
    thread restores that.
    """
    before = torch.get_num_threads()  # also initialises torch's setting of this thread, which happens once
    torch.set_num_threads(1)
    restoring = threading.Thread(target=torch.set_num_threads, args=(before,))
    restoring.start()
    restoring.join()
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))
