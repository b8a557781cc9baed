"""Kernels that are a function of a distance: Gaussian, Laplacian."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ikpca.kernels.base import Floats, Rows
from ikpca.kernels.dot_product import inner_products, squared_norms
from ikpca.kernels.operands import FeatureSplit, Operand

#: Share of the largest of some kernel values below which the distance is not to be told.
_FAR = 1e-6


@dataclass(frozen=True)
class Gaussian:
    """k(x, y) = exp(−γ‖x − y‖²); the papers write γ = 1/(2σ²).

    Parameters
    ----------
    gamma : float, default=1.0
        How fast the kernel falls with the squared distance.

    See Also
    --------
    sklearn.metrics.pairwise.rbf_kernel : The whole matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca import KernelPCA
    >>> from ikpca.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> KernelPCA(2, kernel=Gaussian(0.5)).fit_transform(X).shape
    (50, 2)
    """

    gamma: float = 1.0

    takes_sparse = True
    steps_are_gradients = True

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile: one product of folded operands, then one exp in place."""
        if sparse.issparse(X) or sparse.issparse(Y):
            self._fill_unfolded(X, Y, out)
        else:
            frame = FeatureSplit.about(Y.mean(axis=0))
            left, right = self.fold_left(X, frame), self.fold(Y, frame)
            np.matmul(left.dense, right.dense.T, out=out)
            self.finish(out)

    def diagonal(self, X: Rows) -> Floats:
        """Return ones."""
        return np.ones(X.shape[0], dtype=X.dtype)

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Both operands, two columns wider."""
        return (n_x + n_y) * (n_features + 2) * itemsize

    def weighted_centre(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """The weighted mean (Mika 1999): the distance is Euclidean."""
        pulls = self._pulls(Z, X, weights)
        values = pulls.sum(axis=1)
        centres = pulls @ X
        there = values[:, None] > 0
        np.divide(centres, values[:, None], out=centres, where=there)
        return values, np.where(there, centres, Z)

    def weighted_gradient(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """With ∇k = 2γ(x − z)k; about the mean of X, where the difference rounds least."""
        pulls = self._pulls(Z, X, weights)
        values, origin = pulls.sum(axis=1), X.mean(axis=0)
        gradient = pulls @ (X - origin) - values[:, None] * (Z - origin)
        return values, 2 * self.gamma * gradient

    def diagonal_gradient(self, Z: Floats) -> Floats:
        """Zero: k(z, z) = 1."""
        return np.zeros_like(Z)

    def input_distances(self, values: Floats, squared_norms: Floats) -> Floats:
        """−ln(k)/γ; a value that is tiny beside the largest says no more than "far"."""
        if self.gamma == 0:
            return np.zeros_like(values)
        least = np.maximum(_FAR * values.max(axis=1, keepdims=True), np.finfo(values.dtype).tiny)
        return np.log(np.maximum(values, least)) / -self.gamma

    def _pulls(self, Z: Floats, X: Floats, weights: Floats) -> Floats:
        """G_ij k(z_i, x_j)."""
        out = np.empty(weights.shape, dtype=np.result_type(Z, X))
        self.fill(Z, X, out)
        out *= weights
        return out

    def fold(self, X: Floats, frame: FeatureSplit) -> Operand:
        """[x, 1, −γ‖x‖²], of which the product with the other is the exponent."""
        dense, rare = frame.shifted(X, room=2)
        norms = squared_norms(dense[:, :-2])
        if rare is not None:
            norms += squared_norms(rare)
        dense[:, -1] = norms * -self.gamma
        return Operand(dense, rare)

    def mirror(self, right: Operand) -> Operand:
        """[2γx, −γ‖x‖², 1], in place."""
        dense, rare = right.dense, right.rare
        dense[:, -2] = dense[:, -1]
        dense[:, :-2] *= 2 * self.gamma
        dense[:, -1] = 1
        return Operand(dense, None if rare is None else rare * rare.dtype.type(2 * self.gamma))

    def fold_left(self, Z: Floats, frame: FeatureSplit) -> Operand:
        """For other rows; features in which those of the frame agree add the same to all."""
        left = self.mirror(self.fold(Z, frame))
        if frame.constant.any():
            beside = Z[:, frame.constant] - frame.origin[frame.constant]
            left.dense[:, -2] -= self.gamma * squared_norms(beside)
        return left

    def finish(self, out: Floats) -> None:
        """One exp, in place."""
        np.exp(out, out=out)

    def _fill_unfolded(self, X: Rows, Y: Rows, out: Floats) -> None:
        """CSR rows: subtracting an origin or adding columns would cost their sparsity."""
        inner_products(X, Y, out)
        out *= -2
        out += squared_norms(X)[:, None]
        out += squared_norms(Y)[None, :]
        np.maximum(out, 0, out=out)
        out *= -self.gamma
        np.exp(out, out=out)


@dataclass(frozen=True)
class Laplacian:
    """k(x, y) = exp(−γ‖x − y‖₁).

    Parameters
    ----------
    gamma : float, default=1.0
        How fast the kernel falls with the distance.

    See Also
    --------
    sklearn.metrics.pairwise.laplacian_kernel : The whole matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import Laplacian
    >>> tile = np.empty((1, 1))
    >>> Laplacian(1.0).fill(np.array([[0.0, 0.0]]), np.array([[0.5, 0.5]]), tile)
    >>> tile.round(4)
    array([[0.3679]])
    """

    gamma: float = 1.0

    takes_sparse = True
    steps_are_gradients = False

    def fill(self, X: Rows, Y: Rows, out: Floats) -> None:
        """Write the tile."""
        np.multiply(one_norm_distances(X, Y), -self.gamma, out=out, casting="same_kind")
        np.exp(out, out=out)

    def diagonal(self, X: Rows) -> Floats:
        """Return ones."""
        return np.ones(X.shape[0], dtype=X.dtype)

    def scratch_bytes(self, n_x: int, n_y: int, n_features: int, itemsize: int) -> int:
        """Distances come in double precision, from double-precision operands."""
        return n_x * n_y * 8 + (n_x + n_y) * n_features * 8

    def weighted_centre(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """The weighted median of every feature: the distance is a sum of absolute values.

        As −γ‖z − x‖₁ is linear in the distance, the sum of exponentials is at least its tangent,
        and what the tangent is greatest at, the median, cannot lower it (for positive weights).
        """
        pulls = self._pulls(Z, X, weights)
        values = pulls.sum(axis=1)
        centres = np.empty_like(Z)
        for column in range(X.shape[1]):
            centres[:, column] = _weighted_medians(X[:, column], pulls)
        return values, np.where(values[:, None] > 0, centres, Z)

    def weighted_gradient(self, Z: Floats, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """With ∇k = γ sign(x − z)k, a feature at a time; zero of both sides where they meet."""
        pulls = self._pulls(Z, X, weights)
        gradient = np.empty_like(Z)
        for column in range(X.shape[1]):
            sides = np.sign(X[:, column] - Z[:, column, None])
            gradient[:, column] = np.einsum("ij,ij->i", pulls, sides)
        return pulls.sum(axis=1), self.gamma * gradient

    def diagonal_gradient(self, Z: Floats) -> Floats:
        """Zero: k(z, z) = 1."""
        return np.zeros_like(Z)

    def _pulls(self, Z: Floats, X: Floats, weights: Floats) -> Floats:
        """G_ij k(z_i, x_j)."""
        out = np.empty(weights.shape, dtype=np.result_type(Z, X))
        self.fill(Z, X, out)
        out *= weights
        return out


def _weighted_medians(values: Floats, weights: Floats) -> Floats:
    """For every row of weights the value that leaves half of them, at least, on either side."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[:, order], axis=1)
    return values[order][np.argmax(below >= below[:, -1:] / 2, axis=1)]


def one_norm_distances(X: Rows, Y: Rows) -> Floats:
    """‖x_i − y_j‖₁, for dense and CSR rows in any mixture.

    Parameters
    ----------
    X, Y : ndarray or CSR matrix of shape (n, N) and (m, N)

    Returns
    -------
    ndarray of shape (n, m)

    See Also
    --------
    sklearn.metrics.pairwise.manhattan_distances : The same, for checked input.

    Examples
    --------
    >>> import numpy as np
    >>> from ikpca.kernels import one_norm_distances
    >>> one_norm_distances(np.array([[0.0, 0.0]]), np.array([[1.0, -2.0]]))
    array([[3.]])
    """
    # Imported here: scikit-learn's distances know CSR, and only this kernel needs them.
    from sklearn.metrics.pairwise import manhattan_distances

    if sparse.issparse(X) or sparse.issparse(Y):
        X, Y = _short_indices(X), _short_indices(Y)
    return manhattan_distances(X, Y)


def _short_indices(X: Rows) -> Rows:
    """A CSR array with 32-bit indices, the only kind that scikit-learn's distances take."""
    X = sparse.csr_array(X)
    indices, starts = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sparse.csr_array((X.data, indices, starts), shape=X.shape)
