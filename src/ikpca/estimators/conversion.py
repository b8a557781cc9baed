"""Conversion of fitted batch models to streams."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput, RankWarning
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.kernels import Floats, Kernel, Rows
from ikpca.streams import IncrementalState
from ikpca.subspace import Subspace

#: Relative eigenvalue of the inner products of components below which they are dependent.
_DEPENDENT = 1e-12
_STREAM_PARAMETERS = (
    "n_components", "kernel", "gamma", "degree", "coef0", "kernel_params", "preimage", "whiten",
    "random_state", "n_jobs", "verbose",
)  # fmt: skip


def check_batch_model(model: object) -> None:
    """Raise an error if a stream cannot be initialized from the model."""
    if not isinstance(model, KernelPCA):
        raise InvalidInput(
            f"{type(model).__name__} cannot be converted: pass a fitted ikpca.KernelPCA; convert "
            "scikit-learn's with KernelPCA.from_sklearn."
        )
    check_is_fitted(model)
    if model._is_precomputed:
        raise InvalidInput(
            "kernel='precomputed': a stream needs the rows; fit the model on rows and a kernel."
        )
    if not isinstance(model._subspace.basis, np.ndarray):
        raise InvalidInput(
            "The model was fitted on sparse rows or rows on disk: a stream needs them dense and in "
            "memory; fit it on X.toarray() or X[:]."
        )


def shared_parameters(model: KernelPCA) -> dict[str, Any]:
    """Return the parameters that batch and streaming models share."""
    shared = {name: getattr(model, name) for name in _STREAM_PARAMETERS}
    # Fractions and names are replaced by the fitted values.
    if model.n_components is not None:
        shared["n_components"] = len(model.eigenvalues_)
    if isinstance(model.gamma, str):
        shared["gamma"] = model.gamma_
    if model.preimage == "ridge":
        shared["preimage"] = "auto"
    return shared


def state_from_batch(model: KernelPCA) -> IncrementalState:
    """Return components, mean, singular values and total variance of a batch in float64."""
    subspace, nonzero = model._subspace, model.eigenvalues_ > 0
    number = model.n_samples_seen_
    vectors = subspace.coefficients[np.append(nonzero, True)].astype(np.float64)
    if not model._on_landmarks:
        # In double precision, also after a fit in single precision.
        A = vectors[:-1]
        vectors = np.vstack([A - A.mean(axis=1, keepdims=True), np.full((1, number), 1 / number)])
    if subspace.products.dtype == np.float64:
        products = subspace.products[np.append(nonzero, True)]
    else:
        rows = subspace.basis.astype(np.float64)
        products = Subspace(subspace.kernel, rows, vectors).products
    T = linalg.block_diag(_inverse_root(vectors[:-1] @ products[:-1].T), np.ones((1, 1)))
    total = float(subspace.diagonal.sum(dtype=np.float64) - number * (vectors[-1] @ products[-1]))
    if model._on_landmarks:
        share = float(np.sum(model.explained_variance_ratio_, dtype=np.float64))
        total = float(np.sum(model.eigenvalues_, dtype=np.float64)) / share
    return IncrementalState(
        subspace.kernel,
        subspace.basis,
        T @ vectors,
        T @ products,
        np.sqrt(model.eigenvalues_[nonzero].astype(np.float64)),
        float(number),
        total,
        None,
    )


def refined_state(
    kernel: Kernel,
    X: Rows,
    n_components: int | None,
    start: Floats,
    n_jobs: int | None,
    verbose: int,
) -> IncrementalState:
    """Compute the exact components of a batch, starting from projections on streamed ones."""
    batch = KernelPCA(n_components, kernel=kernel, random_state=0, n_jobs=n_jobs, verbose=verbose)
    with warnings.catch_warnings():
        # Oversampled components may exceed the rank.
        warnings.simplefilter("ignore", RankWarning)
        batch._fit_rows(kernel, X, start)
    return state_from_batch(batch)


def _inverse_root(gram: Floats) -> Floats:
    """Return M^{-1/2}, which corrects the rounding errors in a solver's orthonormality."""
    values, vectors = linalg.eigh((gram + gram.T) / 2)
    if len(values) and values[0] <= _DEPENDENT * values[-1]:
        raise InvalidInput(
            "The components of the model are linearly dependent: a stream cannot start from them; "
            "call refine first, or fit with rayleigh_ritz=True."
        )
    return (vectors / np.sqrt(values)) @ vectors.T
