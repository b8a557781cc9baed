"""Strips of the kernel matrix that are read ahead in another thread."""

from __future__ import annotations

import threading
import time

import numpy as np

from ikpca.gram import ComputedGram, PrecomputedGram, center_gram
from ikpca.gram.resources import Workers
from ikpca.kernels import Linear


def test_only_a_stored_matrix_is_read_ahead():
    """A computed one is evaluated by all threads when the strip is asked for."""
    rows, threads = np.random.default_rng(0).normal(size=(60, 3)), []
    blocks = [np.arange(start, min(start + 25, 60)) for start in (0, 25, 50)]
    rows -= rows.mean(axis=0)

    class Recorded(PrecomputedGram):
        def fill(self, rows, columns, out):
            super().fill(rows, columns, out)
            threads.append(threading.current_thread())

    def read(source, n_threads):
        """Return the number of strips read after each request."""
        with Workers(n_threads) as workers:
            gram, _ = center_gram(source, None, workers)
            expected, counts = rows @ rows.T, []
            for block, (strip, own) in zip(blocks, gram.strips(blocks), strict=True):
                time.sleep(0.05)
                counts.append(gram.entries if threads == [] else len(threads))
                np.testing.assert_allclose(
                    strip.columns(np.arange(60)), expected[block], atol=1e-12
                )
                np.testing.assert_allclose(own, expected[np.ix_(block, block)], atol=1e-12)
        return np.diff(counts).tolist()

    stored = Recorded(rows @ rows.T, symmetric=True)
    assert read(stored, 2) == [1, 0]
    assert read(stored, 1) == [1, 1]
    threads.clear()
    assert read(ComputedGram(Linear(), rows, side=16), 2) == [25 * 60, 10 * 60]


def test_an_abandoned_read_does_not_change_later_strips():
    """A pass that diverges leaves the read of its next strip to the threads."""
    matrix = np.random.default_rng(0).normal(size=(60, 60))
    released = threading.Event()

    class SlowSecondRead(PrecomputedGram):
        n_reads = 0

        def fill(self, rows, columns, out):
            self.n_reads += isinstance(rows, np.ndarray)
            if self.n_reads == 2 and isinstance(rows, np.ndarray):
                released.wait(0.2)
            super().fill(rows, columns, out)

    blocks = [np.arange(start, start + 20) for start in (40, 0, 20)]
    with Workers(2) as workers:
        gram, _ = center_gram(SlowSecondRead(matrix + matrix.T, symmetric=True), None, workers)
        for _ in gram.strips(blocks):
            break
        later = [strip.columns(np.arange(60)) for strip, _ in gram.strips(blocks)]
        released.set()
        for found, block in zip(later, blocks, strict=True):
            assert np.array_equal(found, gram.rows(block))
