"""What kind of processor this is, where the numbers or the fastest way depend on it."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

import torch


@cache
def is_intel() -> bool:
    """Whether the processor is one of Intel's."""
    try:
        processor = Path("/proc/cpuinfo").read_text()
    except OSError:
        processor = platform.processor()
    return "GenuineIntel" in processor


def has_vnni() -> bool:
    """Whether this CPU adds products of bytes in 32 bits."""
    known = getattr(torch.cpu, "_is_vnni_supported", None)
    return bool(known()) if known else False
