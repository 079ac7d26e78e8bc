"""How much memory there is for models."""

from __future__ import annotations

import os
from pathlib import Path

import torch

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")  # the limits of a container (version 2)


def free_memory(device: torch.device | str = "cpu") -> int:
    """Bytes that could be taken on a device now; in main memory, within the limit of the container."""
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    limits = [system_memory()]
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        if limit != "max":
            used = int((CGROUP / "memory.current").read_text()) - read_fields(CGROUP / "memory.stat").get("file", 0)
            limits.append(max(0, int(limit) - used))  # a cache of files makes way
    except (OSError, ValueError):
        pass
    return min(limits)


def system_memory() -> int:
    """Bytes free on this computer, as far as it says: Linux exactly; elsewhere half of what is built in, or 4 GiB."""
    try:
        return read_fields(MEMINFO)["MemAvailable"] * 1024
    except (OSError, KeyError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4 << 30


def read_fields(path: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    words = (line.replace(":", " ").split() for line in path.read_text().splitlines())
    return {word[0]: int(word[1]) for word in words if len(word) > 1}


def gigabytes(n_bytes: int) -> str:
    """A size for a person: "1.25 GiB"."""
    return f"{n_bytes / 2**30:.2f} GiB" if n_bytes >= 2**30 / 10 else f"{n_bytes / 2**20:.1f} MiB"
