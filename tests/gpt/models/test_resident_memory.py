"""Resident memory, as reported by Linux in /proc."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from gpt.models.checkpoints.untrusted import open_safetensors
from gpt.models.memory import release_file_pages, return_free_memory

pytestmark = pytest.mark.thorough


COUNT_ARENAS = """
import ctypes, threading
from gpt.models.memory import limit_arenas

def hold_memory():
    held = bytes(5000)
    started.wait()
    ended.wait()

limit_arenas()
started, ended, libc = threading.Barrier(9), threading.Barrier(9), ctypes.CDLL(None)
for _ in range(8):
    threading.Thread(target=hold_memory).start()
started.wait()
libc.fdopen.restype = ctypes.c_void_p
stdout = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, stdout)
libc.fflush(stdout)
ended.wait()
"""


def resident_bytes(kind: str) -> int:
    """Return this process's resident memory in bytes: "RssFile" for mapped files, "VmRSS" for everything."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:"))


def test_released_pages_are_those_of_files_and_are_read_again(tmp_path: Path) -> None:
    stored, other = torch.randn(3_000_000), torch.ones(3_000_000)
    save_file({"weight": stored}, tmp_path / "model.safetensors")
    mapped = open_safetensors(tmp_path / "model.safetensors")["weight"]
    before = resident_bytes("RssFile")
    assert torch.equal(mapped, stored)
    assert resident_bytes("RssFile") - before > 10_000_000
    release_file_pages([mapped, other])
    assert resident_bytes("RssFile") - before < 2_000_000
    assert torch.equal(mapped, stored)
    assert other.sum() == len(other)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="no glibc, whose allocator keeps freed memory")
def test_memory_that_was_freed_is_returned() -> None:
    blocks = [bytes(100_000) for _ in range(2_000)]
    full, last = resident_bytes("VmRSS"), blocks[-1]  # no free memory lies above it
    del blocks
    return_free_memory()
    assert resident_bytes("VmRSS") < full - 100_000_000
    assert last[0] == 0


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="no glibc, which opens an arena for each thread")
def test_threads_share_two_arenas() -> None:
    told = subprocess.run([sys.executable, "-c", COUNT_ARENAS], capture_output=True, text=True, check=True).stdout
    assert told.count("<heap ") == 2
