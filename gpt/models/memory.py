"""Measure and release memory."""

from __future__ import annotations

import ctypes
import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

MEMINFO = Path("/proc/meminfo")
MAPS, PAGEMAP = Path("/proc/self/maps"), Path("/proc/self/pagemap")  # of this process
M_ARENA_MAX = -8  # parameter of mallopt(3)
MADV_COLLAPSE = 25  # advice to madvise(2)
HUGE_PAGE = 2 << 20  # bytes
CGROUP = Path("/sys/fs/cgroup")  # memory limits of a container, cgroup version 2


def free_memory(device: torch.device | str = "cpu") -> int:
    """Return the free memory on a device, in bytes. On the CPU, this respects the container's limit."""
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    free = 4 << 30  # if the system tells nothing
    with suppress(AttributeError, ValueError, OSError):
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2  # half the installed memory
    with suppress(OSError, KeyError):  # on Linux
        free = read_fields(MEMINFO)["MemAvailable"] * 1024
    with suppress(OSError, ValueError):  # no container, or no limit
        limit = int((CGROUP / "memory.max").read_text())
        used = int((CGROUP / "memory.current").read_text()) - read_fields(CGROUP / "memory.stat").get("file", 0)
        free = min(free, max(0, limit - used))  # `used` excludes the page cache, which is freed on demand
    return free


def read_fields(path: Path) -> dict[str, int]:
    """Return {name: number} for the lines in a file that contain both."""
    words = (line.replace(":", " ").split() for line in path.read_text().splitlines())
    return {word[0]: int(word[1]) for word in words if len(word) > 1 and word[1].isdigit()}


def format_bytes(n_bytes: int) -> str:
    """Format a number of bytes in the largest suitable unit, such as "72.00 KiB" for 73,728."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n_bytes >= size:
            return f"{n_bytes / size:.2f} {unit}"
    return f"{n_bytes} B"


def limit_arenas() -> None:
    """Limit glibc's allocator to two arenas for all threads. Does nothing with other allocators.

    By default, glibc creates up to eight arenas per core. In each arena, memory in use can prevent freed memory from
    returning to the system: with 16 arenas, a process used 50 MB more after a few thousand texts.
    """
    call_glibc("mallopt", M_ARENA_MAX, 2)


def return_free_memory() -> None:
    """Make glibc's allocator return freed memory to the system. Does nothing with other allocators."""
    call_glibc("malloc_trim", 0)


def use_huge_pages() -> None:
    """Move this process's memory to pages of 2 MB, on Linux 6.1 or newer. Takes up to five seconds per GB.

    A token reads all weights. Looking up the addresses of their pages of 4 KB takes a tenth of its time. Memory that is
    reserved but not yet written stays as it is, because it would then be taken: rows of a `Block`, stacks of threads.
    """
    with suppress(OSError), PAGEMAP.open("rb", buffering=0) as pagemap:  # not on Linux
        for line in MAPS.read_text().splitlines():
            addresses, permissions, _, _, inode = line.split()[:5]
            start, end = (int(address, 16) for address in addresses.split("-"))
            if permissions != "rw-p" or inode != "0":  # of a file, or shared
                continue
            first = -(-start // HUGE_PAGE) * HUGE_PAGE
            for address in range(first, end - HUGE_PAGE + 1, HUGE_PAGE):
                pagemap.seek(address // mmap.PAGESIZE * 8)
                pages = np.frombuffer(pagemap.read(HUGE_PAGE // mmap.PAGESIZE * 8), np.uint64)
                if (pages >> 63).mean() > 0.9:  # the highest bit of each tells whether it is in memory
                    call_glibc("madvise", ctypes.c_void_p(address), ctypes.c_size_t(HUGE_PAGE), MADV_COLLAPSE)


def call_glibc(name: str, *arguments: Any) -> None:
    with suppress(AttributeError, OSError, TypeError):
        getattr(ctypes.CDLL(None), name)(*arguments)
