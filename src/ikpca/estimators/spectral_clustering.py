"""Spectral clustering on kernel components (Günter 2006, section 5.3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans
from sklearn.utils import Tags

from ikpca.errors import (
    Choice,
    InvalidInput,
    Number,
    ParameterRules,
    check_parameters,
    invalid_parameter,
)
from ikpca.estimators.base import SavedEstimator, atomic
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.estimators.validation import (
    GammaLike,
    KernelLike,
    RandomStateLike,
    RowsLike,
    draw_seed,
    gamma_beside,
    is_named,
    single_thread,
)
from ikpca.gram import GramSource, multiply
from ikpca.gram.resources import SERIAL, Workers
from ikpca.gram.sources import WrappedSource
from ikpca.kernels import Floats, Indices, Kernel, Rows
from ikpca.solvers import Problem, Solver

_COUNT = Number("must be a positive integer", "pass 10", low=1, integer=True)
_RULES: ParameterRules = {
    "n_clusters": _COUNT,
    "n_init": _COUNT,
    "normalize": Choice(("njw", None)),
    "n_components": Number("must be a positive integer or None", "pass None",
                           low=1, integer=True, allowed=(None,)),
}  # fmt: skip
_SHARED_PARAMETERS = (
    "kernel", "degree", "coef0", "kernel_params", "eigen_solver", "tol", "max_iter",
    "max_memory", "n_jobs", "verbose",
)  # fmt: skip


class KernelSpectralClustering(ClusterMixin, SavedEstimator):
    """Spectral clustering by k-means on leading kernel components, without an l×l matrix.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_components : int, default=None
        Dimension of the embedding; None: the number of clusters. The first component of "njw"
        alone does not separate any samples.
    normalize : {"njw", None}, default="njw"
        "njw": eigenvectors of D^{-1/2} K D^{-1/2}, with the row sums D of K and rows of unit length
        (Ng, Jordan and Weiss 2002). None: projections on the kernel principal components.
    kernel, gamma, degree, coef0, kernel_params : as in :class:`ikpca.KernelPCA`
        The defaults are the Gaussian kernel and "scale", which has no effect beside a kernel
        object. With "njw" the row sums of the kernel matrix must be positive.
    eigen_solver, tol, max_iter, max_memory, n_jobs, verbose : as in :class:`ikpca.KernelPCA`
        Parameters of the solver.
    n_init : int, default=10
        Number of runs of k-means; the best result is used.
    random_state : int, RandomState or None, default=None
        Seed of the solver and of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Label of each sample.
    embedding_ : ndarray of shape (n_samples, n_components)
        Input of k-means.
    cluster_centers_ : ndarray of shape (n_clusters, n_components)
        Cluster centers in the embedding.
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the normalized or of the centered kernel matrix, descending.
    history_, outcome_, n_iter_ : as in :class:`ikpca.KernelPCA`
    gamma_ : float
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Defined only if X has string column names.

    See Also
    --------
    sklearn.cluster.SpectralClustering : Stores the affinity matrix.
    ikpca.metrics.variation_of_information : Distance between two clusterings.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from ikpca import KernelSpectralClustering
    >>> from ikpca.metrics import variation_of_information
    >>> X, y = make_blobs(300, centers=3, random_state=0, cluster_std=0.5)
    >>> labels = KernelSpectralClustering(3, random_state=0).fit_predict(X)
    >>> round(variation_of_information(labels, y), 2)
    0.0
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        normalize: Literal["njw"] | None = "njw",
        kernel: KernelLike = "rbf",
        gamma: GammaLike = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, object] | None = None,
        eigen_solver: str | Solver = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        max_memory: int | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        n_init: int = 10,
        random_state: RandomStateLike = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.normalize = normalize
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.n_init = n_init
        self.random_state = random_state

    @atomic
    def fit(self, X: RowsLike, y: object = None) -> Self:
        """Compute the components and cluster the projected rows.

        Parameters
        ----------
        X : array-like or CSR of shape (n_samples, n_features)
            Rows, or the kernel matrix with ``kernel="precomputed"``.
        y : Ignored

        Returns
        -------
        self
        """
        rows: Rows = X if hasattr(X, "shape") else np.asarray(X)
        check_parameters(self, _RULES)
        if len(rows.shape) == 2 and self.n_clusters > rows.shape[0]:
            rule = f"there are only {rows.shape[0]} samples"
            raise invalid_parameter("n_clusters", self.n_clusters, rule, "pass a smaller number")
        number = int(self.n_clusters if self.n_components is None else self.n_components)
        seed = draw_seed(self.random_state)
        # The first vector of the normalized matrix is known.
        pca = KernelPCA(number) if self.normalize is None else NormalizedPCA(max(1, number - 1))
        pca.set_params(
            gamma=gamma_beside(self.kernel, self.gamma),
            **{name: getattr(self, name) for name in _SHARED_PARAMETERS},
            copy_X=False,
            random_state=seed,
        )
        self.embedding_, self.eigenvalues_ = pca.fit_transform(rows), pca.eigenvalues_
        if isinstance(pca, NormalizedPCA):
            vectors = pca.eigenvectors_of(self.embedding_)[:, :number]
            # The first vector has no zeros, so no row is zero. Its eigenvalue is 1.
            self.embedding_ = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
            ones = np.ones(1, dtype=self.eigenvalues_.dtype)
            self.eigenvalues_ = np.append(ones, self.eigenvalues_)[:number]
        for name in ("gamma_", "history_", "outcome_", "n_iter_", "n_features_in_"):
            setattr(self, name, getattr(pca, name))
        if hasattr(pca, "feature_names_in_"):
            self.feature_names_in_ = pca.feature_names_in_
        means = KMeans(self.n_clusters, n_init=self.n_init, random_state=seed)
        # The last bits of the centers depend on the number of threads.
        with single_thread():
            self.labels_ = means.fit_predict(self.embedding_)
        self.cluster_centers_ = means.cluster_centers_
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_named(self.kernel, "precomputed")
        return tags


class NormalizedPCA(KernelPCA):
    """Eigenvectors of the normalized kernel matrix but the first, by kernel PCA."""

    _gram: NormalizedGram

    def _problem(self, kernel: Kernel | None, X: Rows, seed: int, start: Floats | None) -> Problem:
        def normalize(source: GramSource, workers: Workers) -> GramSource:
            self._gram = NormalizedGram(source, workers)
            return self._gram

        return replace(super()._problem(kernel, X, seed, start), transform=normalize)

    def eigenvectors_of(self, projections: Floats) -> Floats:
        """Return the first eigenvector, and those of the projections, as columns of length 1."""
        lengths = np.sqrt(np.square(projections).sum(axis=0, dtype=np.float64))
        units = np.divide(projections, lengths, out=np.zeros_like(projections), where=lengths > 0)
        return np.column_stack([self._gram.first.astype(units.dtype), self._gram.reflect(units)])


class NormalizedGram(WrappedSource):
    """Source of P L P with L = D^{-1/2} K D^{-1/2} (Ng, Jordan and Weiss 2002), D the degrees.

    The first eigenvector of L is known: u ∝ D^{1/2} 1, with eigenvalue 1. The reflection P maps u
    to the constant vector, which centering removes, so that a solver of centered matrices finds the
    other eigenvectors of L; :meth:`reflect` maps them back. P = I − 2wwᵀ is a rank-two change of a
    tile, so no array larger than a tile is allocated.

    Parameters
    ----------
    source : GramSource
        Symmetric kernel matrix K.
    workers : Workers
        Threads for the two passes that compute the degrees and Lw.
    """

    def __init__(self, source: GramSource, workers: Workers = SERIAL) -> None:
        if not source.symmetric:
            raise InvalidInput(
                "the kernel matrix is not symmetric: spectral clustering needs a symmetric one; "
                "pass (K + K.T)/2."
            )
        super().__init__(source)
        n_samples = source.n_samples
        degrees = _degrees(source, workers)
        scale = 1 / np.sqrt(degrees)
        #: The unit eigenvector u of L.
        self.first = np.sqrt(degrees / degrees.sum())
        self._w = _direction(self.first - 1 / np.sqrt(n_samples))
        Lw = scale * multiply(source, (scale * self._w)[:, None], workers)[:, 0]
        self._scale = scale.astype(self.dtype)
        # PLP = L − wzᵀ − zwᵀ.
        z = 2 * Lw - 2 * (self._w @ Lw) * self._w
        self._left = np.column_stack([self._w, z]).astype(self.dtype)

    def reflect(self, V: Floats) -> Floats:
        """Return PV, which maps eigenvectors of this matrix to those of L and back."""
        return (V - 2 * np.outer(self._w, self._w @ V)).astype(V.dtype)

    def fill(self, rows: slice | Indices, columns: slice, out: Floats) -> None:
        """Compute K[rows, columns], scaled and reflected on both sides."""
        tile = self._source.stored_tile(rows, columns) if isinstance(rows, slice) else None
        if tile is None:
            self._source.fill(rows, columns, out)
            tile = out
        np.multiply(tile, self._scale[rows, None], out=out)
        out *= self._scale[columns]
        out -= self._left[rows] @ self._left[columns, ::-1].T

    def stored_tile(self, rows: slice, columns: slice) -> Floats | None:
        """Return None: no tile is stored in this form."""
        return None

    def submatrix(self, rows: Indices, columns: Indices) -> Floats:
        """Return the scaled and reflected K[rows, columns]."""
        values = self._source.submatrix(rows, columns) * self._scale[rows, None]
        values *= self._scale[columns]
        return values - self._left[rows] @ self._left[columns, ::-1].T

    def diagonal(self) -> Floats:
        """Return k(x, x) divided by the degree of x, reflected."""
        return self._source.diagonal() * self._scale**2 - 2 * np.prod(self._left, axis=1)


def _degrees(source: GramSource, workers: Workers) -> Floats:
    degrees = multiply(source, np.ones((source.n_samples, 1)), workers)[:, 0]
    if not degrees.min() > 0:
        raise InvalidInput(
            f"a row of the kernel matrix sums to {degrees.min():.3g}: degrees must be positive; "
            "pass a kernel without negative values, such as 'rbf', or normalize=None."
        )
    return degrees


def _direction(difference: Floats) -> Floats:
    """Return a unit vector; zero, so that P is the identity, if all degrees are equal."""
    length = float(np.linalg.norm(difference))
    return difference / length if length > 0 else difference
