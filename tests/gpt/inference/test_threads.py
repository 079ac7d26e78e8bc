import threading
import time
from pathlib import Path

import pytest
import torch

from gpt.inference.threads import SMALL_WORK, openmp, threads_for

TASKS = Path("/proc/self/task")
needsopenmp = pytest.mark.skipif(not openmp().lib_controllers, reason="this build of torch has no OpenMP library")


@needsopenmp
def test_small_work_runs_on_one_thread_and_the_setting_is_restored():
    before = torch.get_num_threads()
    seen = []
    with threads_for(SMALL_WORK - 1):
        assert torch.get_num_threads() == 1
        other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        other.start()
        other.join()
    assert seen == [before]
    with threads_for(SMALL_WORK):
        assert torch.get_num_threads() == before
    with pytest.raises(KeyError), threads_for(1):
        raise KeyError
    assert torch.get_num_threads() == before


@needsopenmp
def test_a_thread_that_is_new_to_torch_is_limited_as_well():
    seen = []

    def work():
        with threads_for(0):
            seen.append(torch.get_num_threads())
        seen.append(torch.get_num_threads())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [1, torch.get_num_threads()]


@needsopenmp
@pytest.mark.skipif(not TASKS.exists(), reason="this system does not list threads")
def testopenmp_threads_end_after_large_work():
    seen: list[int] = []
    known: set[str] = set()

    def n_new(*, ended: bool) -> int:
        until = time.monotonic() + 10  # the system still lists a thread shortly after its end
        while (n := len({task.name for task in TASKS.iterdir()} - known)) and ended and time.monotonic() < until:
            time.sleep(0.01)
        return n

    def work():
        known.update(task.name for task in TASKS.iterdir())
        assert torch.get_num_threads() >= 1  # makes torch initialise this thread's number of threads
        with openmp().limit(limits=3):
            for _ in range(2):  # new ones are created when needed
                with threads_for(SMALL_WORK):
                    torch.zeros(10**6).exp()
                    seen.append(n_new(ended=False))
                seen.append(n_new(ended=True))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [2, 0, 2, 0]
