"""From a batch to a stream: a fitted ``KernelPCA`` as a state that goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput
from ikpca.estimators.expanding import expansion_of
from ikpca.estimators.fitting import fit_components
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.estimators.solving import Problem
from ikpca.estimators.training import is_precomputed
from ikpca.incremental import State
from ikpca.kernels import Floats, Kernel, Rows
from ikpca.preimages import Expansion

__all__ = ["check_batch_model", "refined_state", "shared_parameters", "state_of_batch"]

_SHARED_PARAMETERS = (
    "n_components", "kernel", "gamma", "degree", "coef0", "kernel_params", "preimage", "whiten",
    "random_state", "n_jobs", "verbose",
)  # fmt: skip


def check_batch_model(model: Any) -> None:
    """Refuse what a stream cannot go on from."""
    if not isinstance(model, KernelPCA):
        raise InvalidInput(
            f"{type(model).__name__} cannot be taken over: pass a fitted ikpca.KernelPCA, for "
            "scikit-learn's through KernelPCA.from_sklearn."
        )
    check_is_fitted(model)
    if is_precomputed(model):
        raise InvalidInput(
            "kernel='precomputed': a stream needs the rows; fit the model on rows and a kernel."
        )
    if sparse.issparse(model.X_fit_) or not isinstance(model.X_fit_, np.ndarray):
        raise InvalidInput(
            "The model was fitted on rows that are sparse or elsewhere: a stream needs them dense "
            "and in memory; fit it on X.toarray() or X[:]."
        )


def shared_parameters(model: KernelPCA) -> dict[str, Any]:
    """What both models call by the same name and mean the same by."""
    shared = {name: getattr(model, name) for name in _SHARED_PARAMETERS}
    # Of a share, the number that it took; γ as the batch has settled it.
    if model.n_components is not None:
        shared["n_components"] = len(model.eigenvalues_)
    if isinstance(model.gamma, str):
        shared["gamma"] = model.gamma_
    if model.preimage == "ridge":
        shared["preimage"] = "auto"
    return shared


def state_of_batch(model: KernelPCA) -> State:
    """Components, mean, singular values and total variance of a fitted batch, in double."""
    projector, there = model._projector, model.eigenvalues_ > 0
    A = projector.coefficients[there].astype(np.float64)
    number = A.shape[1]
    mean = np.full((1, number), 1 / number)
    vectors = np.vstack([A - A.mean(axis=1, keepdims=True), mean])
    products = _products(projector, vectors, np.append(there, True))
    T = linalg.block_diag(_inverse_root(vectors[:-1] @ products[:-1].T), np.ones((1, 1)))
    rows = np.asarray(projector.X_fit)
    lengths = projector.kernel.diagonal(rows).sum(dtype=np.float64)
    return State(
        projector.kernel,
        rows,
        T @ vectors,
        T @ products,
        np.sqrt(model.eigenvalues_[there].astype(np.float64)),
        float(number),
        float(lengths - number * (vectors[-1] @ products[-1])),
        None,
    )


def refined_state(kernel: Kernel, X: Rows, number: int | None, start: Floats, model: Any) -> State:
    """The exact components of a batch, from where streamed ones see its rows."""
    batch = KernelPCA(
        number, kernel=kernel, random_state=0, n_jobs=model.n_jobs, verbose=model.verbose
    )
    fit_components(batch, batch, Problem(kernel, X, 0, start))
    return state_of_batch(batch)


def _products(projector: Any, vectors: Floats, there: Floats) -> Floats:
    """Inner products with the images of the rows; those of a fit in single are worked out again."""
    known = expansion_of(projector, projector.kernel)
    if known.known_products is not None and known.known_products.dtype == np.float64:
        return known.products[there]
    rows = np.asarray(projector.X_fit).astype(np.float64)
    return Expansion(projector.kernel, rows, vectors).products


def _inverse_root(gram: Floats) -> Floats:
    """M^{-1/2}: a solver's components are orthonormal up to its own rounding."""
    values, vectors = linalg.eigh((gram + gram.T) / 2)
    return (vectors / np.sqrt(values)) @ vectors.T
