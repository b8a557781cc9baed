"""Reduction of fitted models to fewer rows."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import sparse
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput, Number, is_auto
from ikpca.estimators.base import KernelTransformer
from ikpca.estimators.incremental_kernel_pca import IncrementalKernelPCA
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.estimators.validation import draw_seed, is_kernel_object
from ikpca.kernels import Floats
from ikpca.reduced_sets import ReducedSet, Reduction, SelectedRows, make_reduction
from ikpca.subspace import Subspace

#: Rows per vector at the start of a search for the size.
_INITIAL_ROWS = 10
_SHARED_PARAMETERS = (
    "kernel",
    "degree",
    "coef0",
    "kernel_params",
    "preimage",
    "whiten",
    "n_jobs",
    "verbose",
)


def compress(
    model: KernelTransformer | ScikitKernelPCA,
    max_basis_rows: int | Literal["auto"] = "auto",
    *,
    reduction: Literal["auto", "preimages", "samples"] | Reduction = "auto",
    tol: float = 0.05,
    random_state: int | np.random.RandomState | None = None,
) -> IncrementalKernelPCA:
    """Compress a fitted model to fewer rows: it transforms faster and supports ``partial_fit``.

    Components and mean are approximated by combinations of the images of a small basis of rows
    (Chin & Suter 2006, section 5), and the components are orthonormalized. With ε_i the
    ``reduction_error_`` of a component and ε the ``mean_reduction_error_``, a projection
    changes by at most ε_i ‖Φ(x) − µ‖ + ε ‖µ‖.

    Parameters
    ----------
    model : KernelPCA, IncrementalKernelPCA, OnlineKernelPCA or sklearn.decomposition.KernelPCA
        Fitted on dense rows with a kernel. It is not modified.
    max_basis_rows : int or "auto", default="auto"
        Maximum number of basis rows, also in later calls of ``partial_fit``. "auto" starts with
        ten per component and doubles it until no error exceeds ``tol``, or half of the rows are
        used.
    reduction : {"auto", "preimages", "samples"} or reduction object, default="auto"
        "samples" selects rows of the model. "preimages" moves these to minimize the errors, for
        kernels with a gradient. "auto" uses pre-images if the kernel supports them. Pass an object
        from :mod:`ikpca.reduced_sets` for other settings; ``IteratedPreimages`` is the method of
        the paper, which finds pre-images one after the other.
    tol : float, default=0.05
        Largest relative error in feature space with ``max_basis_rows="auto"``. With a given size,
        the errors are minimized.
    random_state : int, RandomState or None, default=None
        Seed of the draw of candidate rows if there are more than 4,000.

    Returns
    -------
    IncrementalKernelPCA
        Fitted. Its ``eigenvalues_`` are those of the same samples in the compressed subspace.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ikpca import KernelPCA, compress
    >>> X = load_digits().data / 16
    >>> model = KernelPCA(4, kernel="rbf", gamma=0.02).fit(X)
    >>> small = compress(model, 50)
    >>> small.basis_.shape, bool(small.reduction_error_.max() < 0.05)
    ((50, 64), True)
    """
    Number("must lie in [0, 1)", "pass 0.05", low=0, high=1).check("tol", tol)
    rule, allowed = "must be 'auto' or a positive integer", ("auto",)
    Number(rule, "pass 'auto'", low=1, integer=True, allowed=allowed).check(
        "max_basis_rows", max_basis_rows
    )
    source = _checked_model(model)
    nonzero = np.flatnonzero(source.eigenvalues_ > 0)
    original = source._subspace.select(nonzero)
    singular_values = np.sqrt(source.eigenvalues_[nonzero].astype(np.float64))
    n_seen = int(getattr(source, "n_samples_seen_", None) or len(source._subspace.basis))
    weights = np.append(singular_values, np.sqrt(n_seen))
    search = is_auto(max_basis_rows)
    method = make_reduction(
        reduction, original.kernel, tol=float(tol) if search else 0.0, seed=draw_seed(random_state)
    )
    n_vectors, n_rows = original.coefficients.shape
    limit = max(n_rows // 2, n_vectors) if search else int(max_basis_rows)
    size = min(_INITIAL_ROWS * n_vectors, limit) if search else limit
    while True:
        reduced = method.reduce(original, size, weights)
        small, new_values = reduced.orthonormalize(singular_values)
        errors = _relative_errors(reduced, small)
        if size == limit or (errors <= tol).all():
            break
        size = min(2 * size, limit)
    shared = {name: getattr(source, name) for name in _SHARED_PARAMETERS}
    if isinstance(shared["preimage"], str) and shared["preimage"] == "ridge":
        shared["preimage"] = "auto"
    compressed = IncrementalKernelPCA(
        len(source.eigenvalues_),
        gamma=None if is_kernel_object(source.kernel) else source.gamma_,
        basis="rows" if isinstance(method, SelectedRows) and not method.moves else "auto",
        max_basis_rows=small.basis.shape[0],
        random_state=random_state,
        **shared,
    )
    compressed._copy_feature_names(source)
    compressed._set_components(
        small, np.square(new_values), n_seen,
        _total_variance(source, source._subspace), np.asarray(source._mean_row),
        float(source.gamma_),
    )  # fmt: skip
    compressed.reduction_error_ = errors[:-1]
    compressed.mean_reduction_error_ = float(errors[-1])
    return compressed


def _relative_errors(reduced: ReducedSet, small: Subspace) -> Floats:
    """Return the errors of orthonormal components, 1 for a dropped one, and of the mean."""
    number, lengths = len(small.components), reduced.squared_lengths[:-1]
    mixed = np.einsum("ik,ik->i", small.components, reduced.inner_products[:number])
    squares = lengths.copy()
    squares[:number] += np.diagonal(small.gram)[:-1] - 2 * mixed
    ratios = np.divide(squares, lengths, out=np.zeros_like(squares), where=lengths > 0)
    return np.append(np.sqrt(np.maximum(ratios, 0)), reduced.relative_errors[-1])


def _checked_model(model: KernelTransformer | ScikitKernelPCA) -> KernelTransformer:
    """Return a fitted model of this package; raise an error if it cannot be compressed."""
    if isinstance(model, ScikitKernelPCA) and not isinstance(model, KernelPCA):
        model = KernelPCA.from_sklearn(model)
    if not isinstance(model, KernelTransformer):
        raise InvalidInput(
            f"{type(model).__name__} cannot be compressed: pass a fitted KernelPCA, "
            "IncrementalKernelPCA or OnlineKernelPCA, or a KernelPCA of scikit-learn."
        )
    check_is_fitted(model)
    if not (model.eigenvalues_ > 0).any():
        raise InvalidInput(
            "The model has no component with variance: there is nothing to compress; fit it on "
            "rows that differ."
        )
    rows, remedy = model._subspace.basis, ""
    if model._is_precomputed:
        remedy = "a precomputed kernel matrix; fit the model on rows with a kernel"
    elif sparse.issparse(rows):
        remedy = "sparse rows; fit it on X.toarray()"
    elif not isinstance(rows, np.ndarray):
        remedy = "rows that are read in tiles; fit it on X[:]"
    if remedy:
        raise InvalidInput(
            f"Compression needs dense rows in memory, and the model was fitted on {remedy}."
        )
    return model


def _total_variance(model: KernelTransformer, subspace: Subspace) -> float:
    """Return Σ‖Φ(x) − µ‖²; computed from the rows if the explained variance is not known."""
    share = float(np.sum(model.explained_variance_ratio_, dtype=np.float64))
    if np.isfinite(share) and share > 0:
        return float(np.sum(model.eigenvalues_, dtype=np.float64)) / share
    lengths = float(np.sum(subspace.diagonal, dtype=np.float64))
    return lengths - len(subspace.basis) * float(subspace.gram[-1, -1])
