from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from gpt.inference.admission import Seats


def test_who_comes_later_waits_in_order_and_knows_how_many_are_before():
    seats, leave = Seats(2), [Event() for _ in range(5)]
    told: list[list[int]] = [[] for _ in range(5)]
    seated = [Event() for _ in range(5)]
    waiting = [Event() for _ in range(5)]

    def visit(number):
        with seats.taken() as places:
            for before in places:
                told[number].append(before)
                waiting[number].set()
            seated[number].set()
            assert leave[number].wait(20)

    with ThreadPoolExecutor(5) as pool:
        visits = []
        for number in range(5):
            visits.append(pool.submit(visit, number))
            assert (seated if number < 2 else waiting)[number].wait(20)
        assert [said[-1] if said else 0 for said in told] == [0, 0, 1, 2, 3]
        leave[1].set()
        assert seated[2].wait(20)
        assert not seated[3].is_set()
        leave[0].set()
        assert seated[3].wait(20)
        for event in leave:
            event.set()
        for one in visits:
            one.result(20)
    assert sorted(told[4], reverse=True) == told[4]
    assert told[4][0] == 3


def test_a_place_is_given_back_however_the_block_ends():
    seats = Seats(1)
    with pytest.raises(KeyError), seats.taken():
        raise KeyError
    with seats.taken() as places, seats.taken() as later:
        assert list(places) == []
        assert next(later) == 1
        later.close()
    with seats.taken() as places:
        assert list(places) == []
