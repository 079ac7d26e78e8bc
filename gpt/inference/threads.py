"""Number of CPU threads for a piece of work: one for small work, torch's default otherwise.

For small matrix products, synchronising threads costs more than they save. `torch.set_num_threads` sets the number
for the whole process, OpenMP's own setting for the calling thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from threadpoolctl import ThreadpoolController

SMALL_WORK = 2**28  # multiplications below which one thread is as fast, while other threads need the processors
_OMP_PAUSE_SOFT = 1  # of omp_pause_resource_all: threads are created again when needed


@contextmanager
def threads_for(multiplications: float) -> Iterator[None]:
    """Limit the block to one thread if it has fewer multiplications than SMALL_WORK.

    No effect where torch has no OpenMP library.
    """
    torch.get_num_threads()  # the first call in a thread sets its number, which would undo the limit
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

    If a process has more OpenMP threads than processors, they sleep between parallel regions instead of spinning, and
    waking them costs more than a small matrix product.
    """
    for library in _openmp().lib_controllers:
        pause = getattr(library.dynlib, "omp_pause_resource_all", None)  # since OpenMP 5.0
        if pause is not None:
            pause(_OMP_PAUSE_SOFT)


@cache
def _openmp() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="openmp")
