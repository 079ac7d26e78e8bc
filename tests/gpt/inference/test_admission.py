from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from gpt.inference.admission import AdmissionQueue


def test_callers_beyond_the_limit_wait_in_order_and_get_the_number_ahead():
    queue, leave = AdmissionQueue(2), [Event() for _ in range(5)]
    reported: list[list[int]] = [[] for _ in range(5)]
    admitted = [Event() for _ in range(5)]
    waiting = [Event() for _ in range(5)]

    def visit(number):
        with queue.enter() as ahead:
            for n in ahead:
                reported[number].append(n)
                waiting[number].set()
            admitted[number].set()
            assert leave[number].wait(20)

    with ThreadPoolExecutor(5) as pool:
        visits = []
        for number in range(5):
            visits.append(pool.submit(visit, number))
            assert (admitted if number < 2 else waiting)[number].wait(20)
        assert [said[-1] if said else 0 for said in reported] == [0, 0, 1, 2, 3]
        leave[1].set()
        assert admitted[2].wait(20)
        assert not admitted[3].is_set()
        leave[0].set()
        assert admitted[3].wait(20)
        for event in leave:
            event.set()
        for one in visits:
            one.result(20)
    assert sorted(reported[4], reverse=True) == reported[4]
    assert reported[4][0] == 3


def test_leaving_the_block_in_any_way_leaves_the_queue():
    queue = AdmissionQueue(1)
    with pytest.raises(KeyError), queue.enter():
        raise KeyError
    with queue.enter() as ahead, queue.enter() as later:
        assert list(ahead) == []
        assert next(later) == 1
        later.close()
    with queue.enter() as ahead:
        assert list(ahead) == []


def test_a_closed_queue_refuses_those_who_wait_and_those_who_come():
    queue = AdmissionQueue(1)
    with queue.enter() as ahead, queue.enter() as later:
        assert list(ahead) == []
        assert next(later) == 1
        queue.close()
        with pytest.raises(ValueError, match="the server is about to restart"):
            next(later)
        assert queue.n_admitted == 1
        with pytest.raises(ValueError, match="the server is about to restart"), queue.enter():
            pass
    assert queue.n_admitted == queue.n_waiting == 0
