"""Conversion of fitted models: to and from scikit-learn, from batch to stream."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.preprocessing import KernelCenterer
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput, RankWarning, invalid_parameter
from ikpca.estimators.base import expansion_of
from ikpca.estimators.decomposition import Components, Problem, fitted_attributes
from ikpca.estimators.kernel_pca import KernelPCA, fit_components, set_fitted_attributes
from ikpca.estimators.validation import chosen_kernel, is_precomputed, learns_ridge
from ikpca.gram import Centering
from ikpca.kernels import Floats, Kernel, Rows
from ikpca.solvers import Outcome
from ikpca.streams import IncrementalState
from ikpca.subspace import Expansion

_SHARED_PARAMETERS = (
    "n_components", "kernel", "gamma", "degree", "coef0", "kernel_params", "alpha",
    "fit_inverse_transform", "tol", "max_iter", "iterated_power", "remove_zero_eig",
    "random_state", "copy_X", "n_jobs",
)  # fmt: skip
_INPUT_ATTRIBUTES = ("X_fit_", "gamma_", "n_features_in_", "feature_names_in_")
_INVERSE_ATTRIBUTES = ("dual_coef_", "X_transformed_fit_")
_SCIKIT_KERNELS = ("linear", "poly", "rbf", "sigmoid", "cosine", "precomputed")


def from_sklearn(cls: Any, fitted: Any) -> Any:
    """Our model with the components of a fitted one of scikit-learn."""
    if not isinstance(fitted, ScikitKernelPCA):
        raise InvalidInput(
            f"{type(fitted).__name__} cannot be taken over: pass a fitted "
            "sklearn.decomposition.KernelPCA."
        )
    check_is_fitted(fitted)
    model = cls(**{name: getattr(fitted, name) for name in _SHARED_PARAMETERS})
    model.gamma_ = fitted.gamma_
    kernel = chosen_kernel(model, fitted.X_fit_)
    components = _components(fitted)
    set_fitted_attributes(model, fitted_attributes(components, kernel, fitted.X_fit_, whiten=False))
    _copy_attributes(fitted, model)
    return model


def to_sklearn(model: Any) -> Any:
    """scikit-learn's model with our components; both have the same ``transform``."""
    if model.whiten:
        raise invalid_parameter(
            "whiten", True, "scikit-learn's KernelPCA does not whiten", "fit with whiten=False"
        )
    if not callable(model.kernel) and model.kernel not in _SCIKIT_KERNELS:
        raise invalid_parameter(
            "kernel",
            model.kernel,
            "scikit-learn's KernelPCA does not have it",
            f"choose one of {', '.join(_SCIKIT_KERNELS)}, or a callable",
        )
    parameters = {name: getattr(model, name) for name in _SHARED_PARAMETERS}
    if isinstance(model.gamma, str):
        parameters["gamma"] = model.gamma_
    # Learned under either name; scikit-learn knows one.
    parameters["fit_inverse_transform"] = learns_ridge(model)
    twin = ScikitKernelPCA(**parameters)
    _copy_attributes(model, twin)
    twin.eigenvalues_ = model.eigenvalues_
    twin.eigenvectors_ = model.eigenvectors_
    twin._centerer = _centerer(model._projector.centring)
    return twin


def _copy_attributes(source: Any, target: Any) -> None:
    for name in _INPUT_ATTRIBUTES + _INVERSE_ATTRIBUTES:
        if hasattr(source, name):
            setattr(target, name, getattr(source, name))


def _components(fitted: Any) -> Components:
    eigenvalues, eigenvectors = fitted.eigenvalues_, fitted.eigenvectors_
    roots = np.sqrt(eigenvalues)[:, None]
    vectors = eigenvectors.T
    centerer = fitted._centerer
    centring = Centering(centerer.K_fit_rows_, float(centerer.K_fit_all_))
    return Components(
        coefficients=np.divide(vectors, roots, out=np.zeros_like(vectors), where=roots > 0),
        projections=vectors * roots,
        eigenvalues=eigenvalues,
        eigenvectors=eigenvectors,
        centring=centring,
        # The trace of K' is not among what scikit-learn keeps.
        trace=float("nan"),
        certificate=None,
        outcome=Outcome.EXACT,
        records=[],
    )


def _centerer(centring: Centering) -> KernelCenterer:
    centerer = KernelCenterer().set_output(transform="default")
    centerer.K_fit_rows_ = centring.column_means
    centerer.K_fit_all_ = centring.grand_mean
    centerer.n_features_in_ = len(centring.column_means)
    return centerer


_STREAM_PARAMETERS = (
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
    shared = {name: getattr(model, name) for name in _STREAM_PARAMETERS}
    # Of a share, the number that it took; γ as the batch has settled it.
    if model.n_components is not None:
        shared["n_components"] = len(model.eigenvalues_)
    if isinstance(model.gamma, str):
        shared["gamma"] = model.gamma_
    if model.preimage == "ridge":
        shared["preimage"] = "auto"
    return shared


def state_of_batch(model: KernelPCA) -> IncrementalState:
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
    return IncrementalState(
        projector.kernel,
        rows,
        T @ vectors,
        T @ products,
        np.sqrt(model.eigenvalues_[there].astype(np.float64)),
        float(number),
        float(lengths - number * (vectors[-1] @ products[-1])),
        None,
    )


def refined_state(
    kernel: Kernel, X: Rows, number: int | None, start: Floats, model: Any
) -> IncrementalState:
    """The exact components of a batch, from where streamed ones see its rows."""
    batch = KernelPCA(
        number, kernel=kernel, random_state=0, n_jobs=model.n_jobs, verbose=model.verbose
    )
    with warnings.catch_warnings():
        # Components beyond those asked for may well be more than the rank.
        warnings.simplefilter("ignore", RankWarning)
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
