"""Strips of the kernel matrix that are read ahead in another thread."""

from __future__ import annotations

import threading

import numpy as np

from ikpca.gram import ComputedGram, PrecomputedGram, center_gram
from ikpca.gram.resources import Workers
from ikpca.kernels import Linear


class SlowFirstRead(PrecomputedGram):
    """Matrix whose first read of rows by indices waits for a release."""

    released: threading.Event | None = None

    def fill(self, rows, columns, out):
        released, self.released = self.released, None
        if released is not None:
            released.wait(0.2)
        super().fill(rows, columns, out)


def test_an_abandoned_read_does_not_overwrite_the_next_strips():
    """After an undone pass, the last prefetched strip is not used."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3))
    source = SlowFirstRead(rows @ rows.T, symmetric=True)
    blocks = [np.arange(start, start + 20) for start in (40, 0, 20)]
    with Workers(3) as workers:
        gram, product = center_gram(source, None, workers)
        assert product.shape == (60, 0)
        expected = [gram.rows(block) for block in blocks]
        source.released = threading.Event()
        gram.prefetch_strip(blocks[0])
        first = gram.strip(blocks[1])
        second = gram.prefetch_strip(blocks[2])
        found = second()
        source.released = None
        assert np.array_equal(first.toarray(), expected[1])
        assert np.array_equal(found.toarray(), expected[2])
    # All threads have ended.
    assert np.array_equal(found.toarray(), expected[2])


def test_only_a_stored_matrix_is_read_ahead():
    """A computed one is evaluated by all threads when the strip is asked for."""
    rows, block, started = np.random.default_rng(0).normal(size=(60, 3)), np.arange(20), []

    class Recorded(PrecomputedGram):
        def fill(self, rows, columns, out):
            super().fill(rows, columns, out)
            started.append(threading.current_thread())

    with Workers(2) as workers:
        stored, _ = center_gram(Recorded(rows @ rows.T, symmetric=True), None, workers)
        started.clear()
        strip = stored.prefetch_strip(block)()
        assert started[0] is not threading.current_thread()
        # The columns of the block itself are gathered in the same thread.
        assert strip.columns(block) is strip.columns(block)
        other = np.arange(40, 50)
        expected = strip.toarray()
        np.testing.assert_allclose(strip.columns(other), expected[:, other], atol=1e-12)
        computed, _ = center_gram(ComputedGram(Linear(), rows, side=16), None, workers)
        before = computed.entries
        ahead = computed.prefetch_strip(block)
        assert computed.entries == before
        np.testing.assert_allclose(ahead().toarray(), expected, atol=1e-12)
        assert computed.entries == before + 20 * 60
    with Workers(1) as workers:
        alone, _ = center_gram(Recorded(rows @ rows.T, symmetric=True), None, workers)
        started.clear()
        ahead = alone.prefetch_strip(block)
        assert not started
        assert np.array_equal(ahead().toarray(), expected)
