"""Measure and release memory."""

from __future__ import annotations

import ctypes
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

MEMINFO = Path("/proc/meminfo")
SMAPS = Path("/proc/self/smaps")
# The start of a block of ordinary memory, neither of a file nor shared, and its size and what is in memory, in KB.
MAPPING = re.compile(r"^(\w+)-\w+ rw-p \w+ 00:00 0 .*\nSize: +(\d+) kB\n(?:.*\n){2}Rss: +(\d+) kB$", re.MULTILINE)
M_ARENA_MAX = -8  # parameter of mallopt(3)
MADV_COLLAPSE = 25  # advice to madvise(2)
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
    """Move this process's memory to pages of 2 MB, on Linux 6.1 or newer. Takes about two seconds per GB.

    A token reads all weights. Looking up the addresses of their pages of 4 KB takes a seventh of its time, unless
    the model is small. Blocks of memory that are mostly reserved, such as a cache, stay as they are.
    """
    with suppress(OSError):  # not on Linux
        for start, size, resident in MAPPING.findall(SMAPS.read_text()):
            if int(resident) > 0.75 * int(size):
                block = ctypes.c_void_p(int(start, 16)), ctypes.c_size_t(int(size) * 1024)
                call_glibc("madvise", *block, MADV_COLLAPSE)


def call_glibc(name: str, *arguments: Any) -> None:
    with suppress(AttributeError, OSError, TypeError):
        getattr(ctypes.CDLL(None), name)(*arguments)
