"""Strips of the kernel matrix that are read ahead in another thread."""

from __future__ import annotations

import threading

import numpy as np

from ikpca.gram import PrecomputedGram, Workers, center_gram


class SlowFirstRead(PrecomputedGram):
    """A matrix whose first read of rows by indices waits until it is released."""

    released: threading.Event | None = None

    def fill(self, rows, columns, out):
        released, self.released = self.released, None
        if released is not None:
            released.wait(0.2)
        super().fill(rows, columns, out)


def test_an_abandoned_read_does_not_overwrite_the_next_strips():
    """As after a pass that was undone: its last read ahead is never asked for."""
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
