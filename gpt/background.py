"""Background threads, with progress reports, cancellation and a lower scheduling priority; the number of CPU threads.

For small matrix products, synchronising threads costs more time than it saves. `torch.set_num_threads` affects the
whole process, so `threads_for` uses OpenMP's own setting, which affects only the calling thread.
"""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from typing import Any, TypeVar

import torch
from threadpoolctl import ThreadpoolController

Progress = Callable[[int, int], None]  # (done, total), in work items or bytes
REPORT_SECONDS = 0.3  # interval between reports; also the delay before the first
NICENESS = 10  # set by `lower_priority`; the maximum is 19
SMALL_WORK = 2**28  # multiplications; below this, one thread is as fast as several when the CPU has other work
_OMP_PAUSE_SOFT = 1  # argument to omp_pause_resource_all: threads are recreated when needed

T = TypeVar("T")
Shown = TypeVar("Shown")


class Cancelled(Exception):
    """Raised by `progress` once the generator waiting for the result has been closed."""


def run_with_progress(
    work: Callable[[Progress], T], show: Callable[[int, int], Shown], *, interval: float = REPORT_SECONDS
) -> Generator[Shown, None, T]:
    """Run `work(progress)` in a new thread: `result = yield from run_with_progress(work, show)`.

    Every `interval` seconds until the work ends, the generator yields `show(done, total)` with the arguments from the
    latest call to `progress`, or (0, 0) before the first call. The generator then returns the work's result or raises
    its exception. Closing the generator cancels the work: its next call to `progress` raises Cancelled.
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
        except BaseException as error:  # re-raised in the waiting thread
            result.set_exception(error)

    context = contextvars.copy_context()  # the work sees the context variables of the waiting thread
    threading.Thread(target=context.run, args=(run,), name="run_with_progress", daemon=True).start()
    try:
        while not wait([result], timeout=interval).done:
            yield show(*latest)
        return result.result()
    finally:
        closed.set()


def lower_priority() -> None:
    """Limit the calling thread to one core until it ends and, on Linux, lower its scheduling priority."""
    torch.get_num_threads()  # see threads_for
    openmp().limit(limits=1)  # outside a `with` block, nothing takes it back
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))


def threads_for(multiplications: float) -> AbstractContextManager[Any]:
    """Use one thread inside the `with` block if it performs fewer than SMALL_WORK multiplications."""
    torch.get_num_threads()  # the first call in a thread sets its number of threads, which would undo the limit
    if multiplications < SMALL_WORK:
        return openmp().limit(limits=1)
    several = ExitStack()
    several.callback(release_threads)
    return several


def release_threads() -> None:
    """End the OpenMP threads that belong to the calling thread. Call it before the thread waits.

    If a process has more OpenMP threads than the CPU has cores, threads sleep between parallel regions instead of
    spinning, and waking them up takes longer than a small matrix product.
    """
    for library in openmp().lib_controllers:
        pause = getattr(library.dynlib, "omp_pause_resource_all", None)  # since OpenMP 5.0
        if pause is not None:
            pause(_OMP_PAUSE_SOFT)


@cache
def openmp() -> ThreadpoolController:
    """Return what limits the process's OpenMP threads; made once, because it looks for libraries."""
    return ThreadpoolController().select(user_api="openmp")
