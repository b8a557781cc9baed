"""Threads that share items: order, trouble, and callers that want no more."""

from __future__ import annotations

import threading
import time

import pytest

from ikpca.gram import Workers


@pytest.fixture(params=[1, 2, 5])
def workers(request):
    with Workers(request.param) as running:
        yield running


def test_results_come_in_the_order_of_the_items(workers):
    def slow_when_early(item):
        time.sleep(0.002 if item < 3 else 0)
        return item * item

    for number in (0, 1, 2, 3, 100):
        assert list(workers.map(slow_when_early, range(number))) == [i * i for i in range(number)]


def test_every_thread_works():
    names = set()
    meeting = threading.Barrier(3, timeout=20)

    def meet(item):
        names.add(threading.current_thread().name)
        meeting.wait()

    with Workers(3) as workers:
        workers.each(meet, range(3))
    assert len(names) == 3


def test_a_slow_item_does_not_hold_up_the_others():
    """While the first item waits for the third, another thread must have taken the second."""
    third = threading.Event()

    def work(item):
        if item == 0:
            assert third.wait(timeout=20)
        if item == 2:
            third.set()
        return item

    with Workers(2) as workers:
        assert list(workers.map(work, range(4))) == [0, 1, 2, 3]


@pytest.mark.parametrize("bad", [0, 1, 7])
def test_trouble_comes_out_where_it_belongs(workers, bad):
    seen = []

    def fail(item):
        if item == bad:
            raise ZeroDivisionError(str(item))
        return item

    with pytest.raises(ZeroDivisionError, match=str(bad)):
        seen.extend(workers.map(fail, range(20)))
    assert seen == list(range(bad))
    # And the threads are free again.
    assert list(workers.map(abs, range(5))) == list(range(5))


def test_a_caller_that_stops_early_leaves_nothing_running(workers):
    begun = []
    results = workers.map(lambda item: begun.append(item) or item, range(10_000))
    assert next(results) == 0
    results.close()
    count = len(begun)
    assert count < 1000
    assert list(workers.map(abs, range(3))) == [0, 1, 2]
    assert len(begun) == count
