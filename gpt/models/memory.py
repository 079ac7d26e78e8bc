"""Free memory, and sizes in bytes as text."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

MEMINFO, MAPS = Path("/proc/meminfo"), Path("/proc/self/maps")
M_ARENA_MAX = -8  # of mallopt(3)
CGROUP = Path("/sys/fs/cgroup")  # memory limits of a container, cgroup version 2


def free_memory(device: torch.device | str = "cpu") -> int:
    """Bytes that are free on a device; of main memory, within the limit of the container."""
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    limits = [system_memory()]
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        if limit != "max":
            used = int((CGROUP / "memory.current").read_text()) - read_fields(CGROUP / "memory.stat").get("file", 0)
            limits.append(max(0, int(limit) - used))  # `used` excludes the page cache, which the kernel frees on demand
    except (OSError, ValueError):
        pass
    return min(limits)


def system_memory() -> int:
    """Bytes of main memory that are free on Linux; elsewhere half of what is installed, or 4 GiB if that is unknown."""
    try:
        return read_fields(MEMINFO)["MemAvailable"] * 1024
    except (OSError, KeyError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4 << 30


def read_fields(path: Path) -> dict[str, int]:
    """{name: number} of the lines of a file that have both."""
    words = (line.replace(":", " ").split() for line in path.read_text().splitlines())
    return {word[0]: int(word[1]) for word in words if len(word) > 1 and word[1].isdigit()}


def format_bytes(n_bytes: int) -> str:
    """Return a number of bytes in its largest unit: 73,728 is "72.00 KiB"."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n_bytes >= size:
            return f"{n_bytes / size:.2f} {unit}"
    return f"{n_bytes} B"


def limit_arenas() -> None:
    """Let all threads take memory from two arenas of glibc's allocator; does nothing with another one.

    glibc opens up to eight a core. In each, what one text leaves in use keeps the memory of those before it from being
    returned: with 16, a process took 50 MB more after a few thousand texts.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 2)


def return_free_memory() -> None:
    """Return memory to the system that glibc's allocator keeps after it was freed; does nothing with another one."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def release_file_pages(tensors: Iterable[Tensor]) -> None:
    """Take out of this process's memory what was read of memory-mapped files; reading it again maps it again.

    Does nothing for tensors that are not memory-mapped, and where the system does not say which are (Linux does).
    """
    try:
        lines = [line.split() for line in MAPS.read_text().splitlines()]
        ranges = [tuple(int(end, 16) for end in line[0].split("-")) for line in lines if line[4] != "0"]
        advise = ctypes.CDLL(None).madvise
    except (AttributeError, OSError, TypeError, LookupError, ValueError):
        return
    for tensor in tensors:
        start, stop = tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size()
        start, stop = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, stop // mmap.PAGESIZE * mmap.PAGESIZE
        if start < stop and any(low <= start and stop <= high for low, high in ranges):
            advise(ctypes.c_void_p(start), ctypes.c_size_t(stop - start), mmap.MADV_DONTNEED)
