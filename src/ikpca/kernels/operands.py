"""Operands of kernels whose tiles are one matrix product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ikpca.kernels.base import Floats, Indices, Kernel, Rows

_Mask: TypeAlias = NDArray[np.bool_]

#: Rows at a time: strips stay near the processor.
_STRIP = 256
#: Rows of which the middle value is taken for the most common one of a feature.
_SAMPLE = 9
#: A feature is rare where at most this share of the rows differs from its common value. From some
#: 7 % on, the dense product is the quicker one.
_RARE_SHARE = 0.05
#: Fewer rare features are not worth a second product, and fewer rows not the start of the compiler.
_LEAST_RARE, _LEAST_ROWS = 64, 8192


@dataclass(frozen=True, eq=False)
class FeatureSplit:
    """What the features of rows are measured from, and how each of them is multiplied.

    Parameters
    ----------
    origin : ndarray of shape (n_features,)
        The mean of features that vary, the common value of others. A shift of the origin changes no
        distance; it keeps norms small, and with them the rounding of their differences.
    varying : ndarray of bool of shape (n_features,)
        Features of the dense product.
    rare : ndarray of bool of shape (n_features,)
        Features that few rows differ in, such as pixels near the border of images: the product of
        their differences is sparse.
    n_rare : int
        How many of those differences there are.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import FeatureSplit
    >>> Frame.of(np.array([[1.0, 5.0], [3.0, 5.0]])).varying
    array([ True, False])
    """

    origin: Floats
    varying: _Mask
    rare: _Mask
    n_rare: int = 0

    @classmethod
    def of(cls, X: Floats) -> FeatureSplit:
        """That of some dense rows; features in which none differs are in no product."""
        sample = X[np.linspace(0, len(X) - 1, _SAMPLE).astype(np.intp)]
        common = np.partition(sample, _SAMPLE // 2, axis=0)[_SAMPLE // 2]
        differing = sum(np.count_nonzero(X[strip] != common, axis=0) for strip in _strips(X))
        varying, rare = differing > 0, (differing > 0) & (differing <= _RARE_SHARE * len(X))
        if len(X) < _LEAST_ROWS or rare.sum() < _LEAST_RARE:
            rare = np.zeros_like(varying)
        varying &= ~rare
        origin = np.where(varying, X.mean(axis=0), common)
        return cls(origin, varying, rare, int(differing[rare].sum()))

    @classmethod
    def about(cls, origin: Floats) -> FeatureSplit:
        """One in which all features vary."""
        every = np.ones(len(origin), dtype=bool)
        return cls(origin, every, ~every)

    def together(self) -> FeatureSplit:
        """The same with rare features in the dense product."""
        return FeatureSplit(self.origin, self.varying | self.rare, np.zeros_like(self.rare))

    @property
    def constant(self) -> _Mask:
        """Features that are in no product."""
        return ~(self.varying | self.rare)

    def operand_bytes(self, n_rows: int) -> int:
        """Of the operand of the rows that the frame is made for, two columns wider."""
        item = self.origin.itemsize
        # What is sparse is kept by rows and by columns, with 32-bit indices.
        sparse_bytes = 2 * self.n_rare * (item + 4)
        return n_rows * (int(self.varying.sum()) + 2) * item + sparse_bytes

    def shifted(self, X: Floats, room: int) -> tuple[Floats, Rows | None]:
        """Differences from the origin: dense with more columns, of ones, and sparse."""
        out = np.empty((len(X), int(self.varying.sum()) + room), np.result_type(X, self.origin))
        dense = out[:, : out.shape[1] - room]
        out[:, dense.shape[1] :] = 1
        if self.varying.all():
            np.subtract(X, self.origin, out=dense)
            return out, None
        rare = [sparse.csr_array((0, int(self.rare.sum())), dtype=out.dtype)]
        for strip in _strips(X):
            # Picking columns out of all of X at once takes three times as long.
            moved = X[strip] - self.origin
            dense[strip] = np.compress(self.varying, moved, axis=1)
            if self.rare.any():
                rare.append(sparse.csr_array(np.compress(self.rare, moved, axis=1)))
        return out, sparse.vstack(rare, format="csr") if self.rare.any() else None


@dataclass(frozen=True, eq=False)
class Operand:
    """One side of a product: rows that are dense, and beside them rows that are sparse.

    Parameters
    ----------
    dense : ndarray of shape (n, columns)
    rare : CSR array of shape (n, other columns) or None

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Operand
    >>> Operand(np.eye(3)).copy(slice(0, 2)).dense.shape
    (2, 3)
    """

    dense: Floats
    rare: Rows | None = None

    def copy(self, rows: slice | Indices = slice(None)) -> Operand:
        """Some of the rows, to write to."""
        dense = self.dense[rows]
        if isinstance(rows, slice):
            dense = dense.copy()
        return Operand(dense, None if self.rare is None else self.rare[rows])


@runtime_checkable
class MatmulKernel(Kernel, Protocol):
    """A kernel of which a tile is one product of prepared operands, finished in place.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import MatmulKernel, FeatureSplit, Gaussian
    >>> isinstance(Gaussian(), FoldingKernel)
    True
    >>> X = np.array([[0.0], [1.0]])
    >>> right = Gaussian(0.5).fold(X, Frame.of(X))
    >>> tile = Gaussian(0.5).mirror(right.copy()).dense @ right.dense.T
    >>> Gaussian(0.5).finish(tile)
    >>> tile.round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    def fold(self, X: Floats, frame: FeatureSplit) -> Operand:
        """The right operand of dense rows, in their frame: made once, used often."""

    def mirror(self, right: Operand) -> Operand:
        """The left operand of the same rows, written over the right one: at next to no cost."""

    def fold_left(self, Z: Floats, frame: FeatureSplit) -> Operand:
        """The left operand of other rows, in the frame of those on the right."""

    def finish(self, out: Floats) -> None:
        """Turn a product of operands into kernel values."""


def _strips(X: Floats) -> Iterator[slice]:
    for start in range(0, len(X), _STRIP):
        yield slice(start, min(start + _STRIP, len(X)))
