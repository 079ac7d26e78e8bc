"""Free memory, and sizes in bytes as text."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

import torch

MEMINFO = Path("/proc/meminfo")
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
    return {word[0]: int(word[1]) for word in words if len(word) > 1}


def format_bytes(n_bytes: int) -> str:
    """A number of bytes in its largest unit: 73,728 is "72.00 KiB"."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n_bytes >= size:
            return f"{n_bytes / size:.2f} {unit}"
    return f"{n_bytes} B"


def return_free_memory() -> None:
    """Return memory to the system that glibc's allocator keeps after it was freed; does nothing with another one."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
