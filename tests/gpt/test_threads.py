import threading
from pathlib import Path

import pytest
import torch

from gpt.inference.threads import SMALL, _openmp, keep_helpers, threads_for

TASKS = Path("/proc/self/task")


@pytest.mark.skipif(_openmp() is None, reason="this build of torch brings no OpenMP library of its own")
def test_small_work_has_one_thread_and_everything_else_what_it_had():
    before = torch.get_num_threads()
    seen = []
    with threads_for(SMALL - 1):
        assert torch.get_num_threads() == 1
        other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        other.start()
        other.join()
    assert seen == [before]
    with threads_for(SMALL):
        assert torch.get_num_threads() == before
    with pytest.raises(KeyError), threads_for(1):
        raise KeyError
    assert torch.get_num_threads() == before


@pytest.mark.skipif(_openmp() is None, reason="this build of torch brings no OpenMP library of its own")
@pytest.mark.skipif(not TASKS.exists(), reason="this system does not list threads")
@pytest.mark.parametrize("keeps", [True, False])
def test_helpers_of_a_large_work_end_with_it_unless_their_thread_keeps_them(keeps):
    seen = []

    def helpers() -> set[str]:
        return {task.name for task in TASKS.iterdir()} - known

    def work():
        assert torch.get_num_threads() >= 1  # torch has its say first
        _openmp().omp_set_num_threads(3)
        if keeps:
            keep_helpers()
        for _ in range(2):  # they come again when they are needed
            with threads_for(SMALL):
                torch.zeros(10**6).exp()
                seen.append(len(helpers()))
            seen.append(len(helpers()))

    thread = threading.Thread(target=lambda: (known.update(task.name for task in TASKS.iterdir()), work()))
    known: set[str] = set()
    thread.start()
    thread.join()
    assert seen == ([2] * 4 if keeps else [2, 0] * 2)
