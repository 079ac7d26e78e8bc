import threading

import pytest
import torch

from gpt.threads import SMALL, _openmp, threads_for


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
