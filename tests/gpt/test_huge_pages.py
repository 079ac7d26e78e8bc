import ctypes
import mmap
from pathlib import Path

import numpy as np
import pytest
import torch

from gpt.cache import LARGE, lazy_zeros
from gpt.inference import huge_pages

MAPS = """\
55d0c0000000-55d0c4000000 rw-p 00000000 00:00 0                          [heap]
7f0000100000-7f0000900000 rw-p 00000000 00:00 0
7f0001100000-7f0001300000 rw-p 00000000 00:00 0
7f0002000000-7f0003000000 r--p 00000000 00:00 0
7f0004000000-7f0005000000 rw-p 00000000 fe:00 1234                       /models/model.safetensors
7ffc00000000-7ffc01000000 rw-p 00000000 00:00 0                          [stack]
"""


def test_only_large_memory_of_the_process_itself_is_asked_for_in_whole_pages():
    assert list(huge_pages._large(MAPS)) == [(0x55D0C0000000, 0x55D0C4000000), (0x7F0000200000, 0x7F0000800000)]


@pytest.mark.parametrize(
    ("full", "runs"), [("", []), ("0", []), ("1", [(0, 1)]), ("0110111", [(1, 2), (4, 3)]), ("1001", [(0, 1), (3, 1)])]
)
def test_runs_of_full_pages(full, runs):
    assert list(huge_pages._runs(np.array([page == "1" for page in full], dtype=bool))) == runs


def test_numbers_stay_what_they_are():
    numbers = torch.arange(4_000_000, dtype=torch.float32)
    assert huge_pages.use_huge_pages() >= 0
    assert torch.equal(numbers, torch.arange(4_000_000, dtype=torch.float32))


def test_a_system_without_such_pages_goes_on_without(tmp_path, monkeypatch):
    monkeypatch.setattr(huge_pages, "MAPS", tmp_path / "none")
    assert huge_pages.use_huge_pages() == 0


def test_a_library_without_the_call_is_no_error(monkeypatch):
    def nothing(name):
        raise OSError("no C library")

    monkeypatch.setattr(ctypes, "CDLL", nothing)
    assert huge_pages.use_huge_pages() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("huge", [True, False])
def test_memory_that_is_taken_later_is_zero_and_can_be_written(dtype, huge):
    zeros = lazy_zeros((3, LARGE // 4, 2), dtype, huge_pages=huge)
    assert zeros.shape == (3, LARGE // 4, 2)
    assert not zeros.any()
    zeros[1, 5] = 2
    assert zeros.sum() == 4


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not say what memory is used")
def test_memory_is_taken_only_as_it_is_written_to():
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    before = resident()
    zeros = lazy_zeros((2**29,), torch.uint8)
    zeros[: 2**20] = 1
    assert resident() - before < 2**28
