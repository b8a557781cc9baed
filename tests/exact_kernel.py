"""Centered kernel matrices in double precision or better, computed without the library."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import cdist

from ikpca.solvers.kha import METHODS

_EPS = np.finfo(np.float64).eps
#: Lanczos iterations take less time than LAPACK from this order on.
_LANCZOS_ORDER = 500


def float64_rows(X):
    """Return float64 copies of dense, sparse or lazily read rows; the values do not change."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X[:], dtype=np.float64)


def kernel_matrix(X, kernel, gamma=None, degree=3, coef0=1):
    """Return K of float64 rows, up to a constant that centering removes.

    Distances are computed from differences. Inner products are computed in extended precision; for
    the linear kernel rows are centered first.
    """
    gamma = 1 / X.shape[1] if gamma is None else gamma
    if kernel in ("rbf", "laplacian"):
        K = cdist(X, X, "sqeuclidean" if kernel == "rbf" else "cityblock")
        K *= -gamma
        return np.expm1(K, out=K)
    rows = X.astype(np.longdouble)
    if kernel == "linear":
        rows = (rows - rows.mean(axis=0)).astype(np.float64)
    elif kernel == "cosine":
        rows = rows / np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    products = rows @ rows.T
    if kernel == "poly":
        return (gamma * products + coef0) ** degree
    return np.tanh(gamma * products + coef0) if kernel == "sigmoid" else products


class ExactKernel:
    """The centered kernel matrix of rows, its eigenvalues, and the true errors of components.

    Parameters
    ----------
    X : rows of shape (n_samples, n_features)
        Of any precision; their values are not changed.
    kernel, gamma, degree, coef0 :
        As in ``KernelPCA``, except that gamma is a number or None.
    """

    def __init__(self, X, kernel, **parameters):
        K = kernel_matrix(float64_rows(X), kernel, **parameters)
        #: Bound of the rounding errors of K', in the spectral norm.
        self.rounding = float(
            4 * np.finfo(K.dtype).eps * np.linalg.norm(K.astype(np.float64, copy=False))
        )
        means, mean = K.mean(axis=0), K.mean()
        K -= means
        K -= means[:, None] - mean
        self.centered = K.astype(np.float64, copy=False)
        self.rounding += float(2 * _EPS * np.linalg.norm(self.centered))

    @cached_property
    def all_eigenvalues(self):
        return linalg.eigvalsh(self.centered)[::-1]

    def eigenvalues(self, number):
        """Return the largest eigenvalues, descending."""
        return self.eigenpairs(number)[0]

    def eigenpairs(self, number):
        """Return the largest eigenvalues, descending, and their eigenvectors."""
        order = len(self.centered)
        if order < _LANCZOS_ORDER:
            values, vectors = linalg.eigh(
                self.centered, subset_by_index=(order - number, order - 1)
            )
        else:
            start = np.random.default_rng(0).normal(size=order)
            values, vectors = eigsh(self.centered, number, which="LA", v0=start)
        ranked = np.argsort(values)[::-1]
        return values[ranked], vectors[:, ranked]

    def residuals(self, vectors, eigenvalues):
        """Return ‖K'v − λv‖/λ₁ for the directions v of columns."""
        v = np.asarray(vectors, dtype=np.float64)
        v = v - v.mean(axis=0)
        lengths = np.linalg.norm(v, axis=0)
        v = np.divide(v, lengths, out=np.zeros_like(v), where=lengths > 0)
        values = np.asarray(eigenvalues, dtype=np.float64)
        return np.linalg.norm(self.centered @ v - v * values, axis=0) / np.abs(values).max()

    def model_residuals(self, model, projections):
        """Return the true residuals of what the certificate of a fitted KernelPCA is about.

        v is along the coefficients; along the projections of the training rows for Hebbian solvers
        and for models that keep only landmarks; along the better of both for krylov with a
        tolerance.
        """
        along_projections = self.residuals(projections, model.eigenvalues_)
        # Projections are rounded to the precision of the rows.
        along_projections -= 2 * np.finfo(projections.dtype).eps
        hebbian = str(getattr(model.eigen_solver, "method", model.eigen_solver)) in METHODS
        if hebbian or hasattr(model, "landmarks_"):
            return along_projections
        along_coefficients = self.residuals(model.eigenvectors_, model.eigenvalues_)
        if model.tol == 0:
            return along_coefficients
        return np.minimum(along_coefficients, along_projections)

    def relative_error(self, projections):
        """Return E/‖K'‖ of projections."""
        Y = np.asarray(projections, dtype=np.float64)
        return np.linalg.norm(self.centered - Y @ Y.T) / np.linalg.norm(self.centered)

    def excess_error(self, projections):
        """Return the excess error of the projections of the training rows, and its rounding error.

        It is E/E_min − 1; if E_min is zero up to the rounding of the projections, it is what E has
        beyond E_min, divided by ‖K'‖.
        """
        Y, eps = projections.astype(np.float64), 10 * np.finfo(projections.dtype).eps
        error, norm = np.linalg.norm(self.centered - Y @ Y.T), np.linalg.norm(self.centered)
        values, vectors = self.eigenpairs(Y.shape[1])
        minimum = np.linalg.norm(self.centered - (vectors * values) @ vectors.T)
        if minimum**2 <= 10 * eps * norm**2:
            excess = np.sqrt(max(error**2 - minimum**2, 0.0)) / norm
            return excess, np.sqrt(eps * minimum / norm) + eps
        return error / minimum - 1, eps * norm / minimum
