"""Coefficients in this process, whose kernel rows are computed on a Dask cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ikpca.dask.gram import DaskGram, kernel_strip, multiply
from ikpca.gram import CenteredGram
from ikpca.kernels import Floats, Indices
from ikpca.solvers import LocalStore


class DaskStrip:
    """Rows K'[P, :] of the centered matrix, one task per row block.

    Parameters
    ----------
    source : DaskGram
        K.
    gram : CenteredGram
        K'.
    patterns : ndarray of int
        P.
    """

    def __init__(self, source: DaskGram, gram: CenteredGram, patterns: Indices) -> None:
        self._client = source.client
        self._means = gram.centering.column_means
        self._offsets = gram.means.row_means[patterns] - gram.dtype.type(gram.centering.grand_mean)
        rows = source.select(patterns)
        # Needed first, and small.
        self._square = source.submit(kernel_strip, rows, rows, source.side, priority=1)
        self._strips = source.strips(rows)
        self._patterns = patterns
        source.entries += len(patterns) * source.n_samples

    def columns(self, indices: Indices) -> Floats:
        """Return K'[P, P]; other columns are not needed."""
        assert indices is self._patterns
        K: Floats = self._client.gather(self._square)
        return K - self._means[indices] - self._offsets[:, None]

    def update(self, T: Floats, products: Floats, C: Floats) -> Floats:
        """Return T RK' + C K'[P, :]: workers multiply the strips, and this process centers."""
        futures = self._client.map(
            multiply, [C] * len(self._strips), self._strips, pure=False, priority=1
        )
        updated = T @ products
        updated -= np.outer(C.sum(axis=1), self._means) + (C @ self._offsets)[:, None]
        updated += np.hstack(self._client.gather(futures))
        return updated


class DaskStore(LocalStore):
    """Coefficient store in this process; workers compute the strips of upcoming blocks in advance.

    Parameters
    ----------
    source : DaskGram
    gram : CenteredGram
        K' of that source.
    rows, products : ndarray of shape (r or 2r, l)
        R and RK'.
    """

    def __init__(
        self, source: DaskGram, gram: CenteredGram, rows: Floats, products: Floats
    ) -> None:
        super().__init__(gram, rows, products)
        self._source = source
        self._strips: list[tuple[Indices, DaskStrip]] = []

    def project(self, patterns: Indices, upcoming: Sequence[Indices] = ()) -> tuple[Floats, Floats]:
        """Submit the tasks of all these blocks, then wait for K'[P, P]."""
        blocks = (patterns, *upcoming)
        self._strips = [(block, self._strip_of(block)) for block in blocks]
        return super().project(patterns)

    def _strip_of(self, patterns: Indices) -> DaskStrip:
        for known, strip in self._strips:
            if known is patterns:
                return strip
        return DaskStrip(self._source, self._gram, patterns)
