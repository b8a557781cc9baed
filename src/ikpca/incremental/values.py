"""Kernel values of a library that grows by batches, each computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ikpca.kernels import Floats

__all__ = ["LibraryValues"]


@dataclass(frozen=True, eq=False)
class LibraryValues:
    """k(x_i, x_j), as strips of columns: every batch adds one, and no matrix is copied for it.

    Parameters
    ----------
    strips : tuple of ndarray of shape (rows so far, rows added)
        From the first row of the library down to the last one of the batch.
    """

    strips: tuple[Floats, ...] = ()

    @property
    def n_rows(self) -> int:
        """Rows of the library."""
        return sum(strip.shape[1] for strip in self.strips)

    @property
    def n_bytes(self) -> int:
        """Memory of the strips."""
        return sum(int(strip.nbytes) for strip in self.strips)

    def grown(self, across: Floats, own: Floats) -> LibraryValues:
        """With the values of new rows: those with the library above those of their own."""
        return LibraryValues((*self.strips, np.vstack([across, own])))

    def matrix(self) -> Floats:
        """All of them, m×m."""
        K = np.empty((self.n_rows, self.n_rows))
        begin = 0
        for strip in self.strips:
            end, width = strip.shape
            K[:end, begin : begin + width] = strip
            K[begin : begin + width, :end] = strip.T
            begin += width
        return K
