"""The queue of texts, and the threads of a pass."""

import threading
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import torch

from gpt.background import SMALL_WORK, openmp, threads_for
from gpt.inference.admission import TURN_TOKENS, AdmissionQueue, Place


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
        waiting = iter(later)
        assert next(waiting) == 1
        waiting.close()
    with queue.enter() as ahead:
        assert list(ahead) == []


def test_a_closed_queue_refuses_those_who_wait_and_those_who_come():
    queue = AdmissionQueue(1)
    with queue.enter() as ahead, queue.enter() as later:
        assert list(ahead) == []
        waiting = iter(later)
        assert next(waiting) == 1
        queue.close()
        with pytest.raises(ValueError, match="the server is about to restart"):
            next(waiting)
        assert queue.n_admitted == 1
        with pytest.raises(ValueError, match="the server is about to restart"), queue.enter():
            pass
    assert queue.n_admitted == queue.n_waiting == 0


def test_after_a_turn_of_tokens_those_who_wait_go_first():
    queue = AdmissionQueue(1)
    with queue.enter() as long:
        assert list(long) == []
        for _ in range(2 * TURN_TOKENS):
            assert list(long.after_token()) == []  # nobody is waiting
        with queue.enter() as short:
            turn = [next(long.after_token(), None) for _ in range(TURN_TOKENS)]
            assert turn == [None] * (TURN_TOKENS - 1) + [1]
            assert list(short) == []
        assert list(long) == []


def test_a_caller_that_has_begun_may_end_after_the_queue_is_closed():
    queue = AdmissionQueue(1)
    with queue.enter() as long:
        assert list(long) == []
        with queue.enter() as short:
            for _ in range(TURN_TOKENS - 1):
                assert list(long.after_token()) == []
            waiting = long.after_token()
            assert next(waiting) == 1
            assert list(short) == []
            queue.close()
            assert next(waiting) == 1
        assert list(waiting) == []


def test_a_caller_that_rests_makes_room_for_those_who_wait_and_joins_at_the_end():
    queue = AdmissionQueue(1)
    with queue.enter() as slow:
        assert list(slow) == []
        slow.rest()
        with queue.enter() as other:
            assert list(other) == []  # it comes during the rest
            assert queue.n_admitted == 2
        assert list(slow.after_token()) == []
        assert queue.n_admitted == 1
        with queue.enter() as other, queue.enter() as third:
            slow.rest()
            assert list(other) == []
            assert next(iter(third)) == 1
            assert next(slow.after_token()) == 2
        assert list(slow) == []
    assert queue.n_admitted == 0


def test_callers_of_two_queues_take_turns_and_never_wait_for_each_other():
    one, other = AdmissionQueue(1), AdmissionQueue(1)
    with Place(one, other) as first, Place(other, one) as second:
        assert list(first) == []
        waiting = iter(second)
        assert next(waiting) == 1
        turn = [next(first.after_token(), None) for _ in range(TURN_TOKENS)]
        assert turn == [None] * (TURN_TOKENS - 1) + [1]
        assert list(waiting) == []
        second.rest()
        assert list(first) == []
        assert (one.n_admitted, other.n_admitted) == (2, 2)
    with Place(one, one) as first:
        assert list(first) == []
    assert one.n_admitted == other.n_admitted == 0


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
