"""How many threads a piece of work uses: small work with one, whatever the rest of the process does.

Two threads that meet after every small product lose more by waiting for each other than they gain, and on a busy
machine they wait for whole time slices. torch's own switch is for the process; OpenMP's is for the calling thread.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch

SMALL = 2**26  # multiplications, below which one thread is enough


@contextmanager
def threads_for(work: int) -> Iterator[None]:
    """What is inside runs on the calling thread alone if it is small; where torch brings an OpenMP that can be told so.

    work: multiplications, about.
    """
    openmp = _openmp() if work < SMALL else None
    if openmp is None:
        yield
        return
    before = torch.get_num_threads()  # of this thread
    openmp.omp_set_num_threads(1)
    try:
        yield
    finally:
        openmp.omp_set_num_threads(before)


@cache
def _openmp() -> ctypes.CDLL | None:
    """The OpenMP library that torch has loaded; None where it brings none of its own."""
    home = Path(torch.__file__).parent
    for path in sorted([*home.glob("lib/libgomp*"), *home.with_name("torch.libs").glob("libgomp*")]):
        try:
            library = ctypes.CDLL(str(path))
            return library if library.omp_get_max_threads() == torch.get_num_threads() else None
        except (OSError, AttributeError):
            continue
    return None
