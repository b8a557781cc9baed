"""Threads that share items: order, errors, and callers that stop early."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from ikpca import KernelPCA, vectorized
from ikpca.estimators.validation import single_thread
from ikpca.gram.resources import Workers


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
        workers.for_each(meet, range(3))
    assert len(names) == 3


def test_slow_item_does_not_block_others():
    """The first item waits for the third; another thread computes the second."""
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
def test_errors_are_raised_in_the_caller(workers, bad):
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


def test_caller_that_stops_early_ends_the_threads(workers):
    begun = []
    results = workers.map(lambda item: begun.append(item) or item, range(10_000))
    assert next(results) == 0
    results.close()
    count = len(begun)
    assert count < 1000
    assert list(workers.map(abs, range(3))) == [0, 1, 2]
    assert len(begun) == count


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def set_blas_threads(number):
    """Set the limit in a thread that ends, so that others can set it."""
    thread = threading.Thread(target=threadpool_limits, args=(number, "blas"))
    thread.start()
    thread.join()


@pytest.fixture
def two_blas_threads():
    before = blas_threads()
    set_blas_threads(2)
    yield blas_threads()
    set_blas_threads(before[0])


@pytest.mark.parametrize("second", [Workers, single_thread])
@pytest.mark.parametrize("in_order", [True, False])
def test_overlapping_limits_restore_the_threads_of_blas(two_blas_threads, second, in_order):
    contexts = [Workers(1), second()]
    for context in contexts:
        context.__enter__()
        assert set(blas_threads()) == {1}
    first, last = contexts if in_order else contexts[::-1]
    first.__exit__(None, None, None)
    last.__exit__(None, None, None)
    assert blas_threads() == two_blas_threads


def test_overlapping_fits_restore_the_threads_of_blas(two_blas_threads):
    """The first fit ends while the second one runs."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    running, ended = threading.Event(), threading.Event()

    def kernel_of(before, after):
        @vectorized
        def kernel(X, Y):
            # Single rows are those of the diagonal, which is computed before the threads start.
            if len(X) > 1:
                before.set()
                assert after.wait(timeout=20)
            return X @ Y.T

        return kernel

    first, second = kernel_of(threading.Event(), running), kernel_of(running, ended)
    with ThreadPoolExecutor(2) as pool:
        fits = [pool.submit(KernelPCA(2, kernel=kernel, eigen_solver="krylov").fit, X)
                for kernel in (first, second)]  # fmt: skip
        fits[0].result()
        ended.set()
        fits[1].result()
    assert blas_threads() == two_blas_threads
