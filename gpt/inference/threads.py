"""How many threads a piece of work uses: small work with one, whatever the rest of the process does.

Two threads that meet after every small product lose more by waiting for each other than they gain, and on a busy
machine they wait for whole time slices. torch's own switch is for the process; OpenMP's is for the calling thread.

OpenMP keeps helpers for each thread that once asked for some. As soon as a process has more of them than processors,
all of them sleep between any two products, and waking them costs more than many a product. So only threads that
compute all the time keep theirs.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch

SMALL = 2**26  # multiplications, below which one thread is enough
SOFT = 1  # of omp_pause_resource_all: everything can be had again
_this_thread = threading.local()


@contextmanager
def threads_for(work: int) -> Iterator[None]:
    """What is inside runs on the calling thread alone if it is small, and on all processors otherwise.

    work: multiplications, about. Without effect where torch brings no OpenMP that can be told so.
    """
    openmp = _openmp()
    if openmp is None:
        yield
    elif work >= SMALL:
        try:
            yield
        finally:
            let_helpers_go()
    else:
        before = torch.get_num_threads()  # of this thread
        openmp.omp_set_num_threads(1)
        try:
            yield
        finally:
            openmp.omp_set_num_threads(before)


def keep_helpers() -> None:
    """The calling thread computes all the time: it keeps its helpers between one large work and the next."""
    _this_thread.keeps = True


def let_helpers_go() -> None:
    """End the threads that help the calling thread, unless it keeps them; they are made anew when they are needed."""
    pause = getattr(_openmp(), "omp_pause_resource_all", None)  # since OpenMP 5.0
    if pause is not None and not getattr(_this_thread, "keeps", False):
        pause(SOFT)


@cache
def _openmp() -> ctypes.CDLL | None:
    """The OpenMP library that torch has loaded; None where it brings none of its own."""
    threads = torch.get_num_threads()  # asked first: it is what sets the number for a thread that is new to torch
    home = Path(torch.__file__).parent
    for path in sorted([*home.glob("lib/libgomp*"), *home.with_name("torch.libs").glob("libgomp*")]):
        try:
            library = ctypes.CDLL(str(path))
            return library if library.omp_get_max_threads() == threads else None
        except (OSError, AttributeError):
            continue
    return None
