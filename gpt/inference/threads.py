"""Number of CPU threads for a piece of work: one for small work, torch's default otherwise.

Two threads that synchronise after every small matrix product lose more by waiting than they gain.
`torch.set_num_threads` is for the whole process; OpenMP's own setting is for the calling thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from threadpoolctl import ThreadpoolController

SMALL_WORK = 2**26  # multiplications below which one thread is faster
_OMP_PAUSE_SOFT = 1  # of omp_pause_resource_all: threads are created again when needed


@contextmanager
def threads_for(multiplications: float) -> Iterator[None]:
    """Run the block on the calling thread alone if it is small, on all processors otherwise.

    No effect where torch has no OpenMP library.
    """
    torch.get_num_threads()  # torch sets a new thread's number on its first call, and would do so inside the block
    if multiplications < SMALL_WORK:
        with _openmp().limit(limits=1):
            yield
    else:
        try:
            yield
        finally:
            release_threads()


def release_threads() -> None:
    """End the OpenMP threads that belong to the calling thread.

    Once a process has more of them than processors, all of them sleep between two parallel regions instead of
    spinning, and waking them costs more than a small matrix product.
    """
    for library in _openmp().lib_controllers:
        pause = getattr(library.dynlib, "omp_pause_resource_all", None)  # since OpenMP 5.0
        if pause is not None:
            pause(_OMP_PAUSE_SOFT)


@cache
def _openmp() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="openmp")
