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
from ikpca.reduced_sets import (
    Reduction,
    SelectedRows,
    make_reduction,
    reduce_subspace,
    reduce_to_tolerance,
)
from ikpca.subspace import Subspace

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
    mean_weight = float(np.sqrt(n_seen))
    seed, is_open = draw_seed(random_state), is_auto(max_basis_rows)
    method = make_reduction(
        reduction, original.kernel, tol=float(tol) if is_open else 0.0, seed=seed
    )
    if is_open:
        small = reduce_to_tolerance(original, singular_values, mean_weight, method, float(tol))
    else:
        size = int(max_basis_rows)
        small = reduce_subspace(original, singular_values, mean_weight, method, size)
    shared = {name: getattr(source, name) for name in _SHARED_PARAMETERS}
    if isinstance(shared["preimage"], str) and shared["preimage"] == "ridge":
        shared["preimage"] = "auto"
    compressed = IncrementalKernelPCA(
        len(source.eigenvalues_),
        gamma=None if is_kernel_object(source.kernel) else source.gamma_,
        basis="rows" if isinstance(method, SelectedRows) else "auto",
        max_basis_rows=small.subspace.basis.shape[0],
        random_state=random_state,
        **shared,
    )
    compressed._copy_feature_names(source)
    compressed._set_components(
        small.subspace, np.square(small.singular_values), n_seen,
        _total_variance(source, source._subspace), np.asarray(source._mean_row),
        float(source.gamma_),
    )  # fmt: skip
    errors = small.relative_errors
    compressed.reduction_error_ = errors[:-1]
    compressed.mean_reduction_error_ = float(errors[-1])
    return compressed


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
    _check_rows(model)
    if not (model.eigenvalues_ > 0).any():
        raise InvalidInput(
            "The model has no component with variance: there is nothing to compress; fit it on "
            "rows that differ."
        )
    return model


def _check_rows(model: KernelTransformer) -> None:
    if model._is_precomputed:
        raise InvalidInput(
            "kernel='precomputed': compression needs the training rows, which a kernel matrix does "
            "not hold; fit the model on rows with a kernel."
        )
    rows = model._subspace.basis
    if sparse.issparse(rows):
        raise InvalidInput(
            "The model was fitted on sparse rows: compression needs dense rows; fit it on "
            "X.toarray()."
        )
    if not isinstance(rows, np.ndarray):
        raise InvalidInput(
            "The model was fitted on rows that are read in tiles: compression needs them in "
            "memory; fit it on X[:]."
        )


def _total_variance(model: KernelTransformer, subspace: Subspace) -> float:
    """Return Σ‖Φ(x) − µ‖²; computed from the rows if the explained variance is not known."""
    share = float(np.sum(model.explained_variance_ratio_, dtype=np.float64))
    if np.isfinite(share) and share > 0:
        return float(np.sum(model.eigenvalues_, dtype=np.float64)) / share
    lengths = float(np.sum(subspace.diagonal, dtype=np.float64))
    return lengths - len(subspace.basis) * float(subspace.gram[-1, -1])
