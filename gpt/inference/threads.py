"""Number of CPU threads: one for small workloads, torch's default otherwise.

For small matrix products, synchronising threads costs more time than it saves. `torch.set_num_threads` affects the
whole process, so this module uses OpenMP's own setting, which affects only the calling thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from threadpoolctl import ThreadpoolController

SMALL_WORK = 2**28  # multiplications; below this, one thread is as fast as several when the CPU has other work
_OMP_PAUSE_SOFT = 1  # argument to omp_pause_resource_all: threads are recreated when needed


@contextmanager
def threads_for(multiplications: float) -> Iterator[None]:
    """Use one thread inside the block if it performs fewer than SMALL_WORK multiplications.

    Does nothing if torch has no OpenMP library.
    """
    torch.get_num_threads()  # the first call in a thread sets its number of threads, which would undo the limit
    if multiplications < SMALL_WORK:
        with openmp().limit(limits=1):
            yield
    else:
        try:
            yield
        finally:
            release_threads()


def release_threads() -> None:
    """End the OpenMP threads that belong to the calling thread.

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
