"""Conversion of fitted models: to and from scikit-learn, from batch to stream."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

import numpy as np
from scipy import linalg, sparse
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.preprocessing import KernelCenterer
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput, RankWarning, invalid_parameter
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.gram.centering import Centering
from ikpca.kernels import Cosine, Floats, Kernel, Linear, Rows
from ikpca.solvers import EigenSolution, Outcome
from ikpca.streams import IncrementalState
from ikpca.subspace import Subspace

Model = TypeVar("Model", bound=KernelPCA)

#: Relative eigenvalue of the inner products of components below which they are dependent.
_DEPENDENT = 1e-12
_SHARED_PARAMETERS = (
    "n_components", "kernel", "gamma", "degree", "coef0", "kernel_params", "alpha",
    "fit_inverse_transform", "tol", "max_iter", "iterated_power", "remove_zero_eig",
    "random_state", "copy_X", "n_jobs",
)  # fmt: skip
_STREAM_PARAMETERS = (
    "n_components", "kernel", "gamma", "degree", "coef0", "kernel_params", "preimage", "whiten",
    "random_state", "n_jobs", "verbose",
)  # fmt: skip
_SHARED_ATTRIBUTES = ("X_fit_", "gamma_", "n_features_in_", "feature_names_in_", "dual_coef_")
_SCIKIT_KERNELS = ("linear", "poly", "rbf", "sigmoid", "cosine", "precomputed")


def from_sklearn(cls: type[Model], fitted: Any) -> Model:
    """Return an ikpca model with the components of a fitted scikit-learn model."""
    if not isinstance(fitted, ScikitKernelPCA):
        raise InvalidInput(
            f"{type(fitted).__name__} cannot be converted: pass a fitted "
            "sklearn.decomposition.KernelPCA."
        )
    check_is_fitted(fitted)
    model = cls(**{name: getattr(fitted, name) for name in _SHARED_PARAMETERS})
    model.gamma_ = fitted.gamma_
    model._set_fitted(_solution(fitted), model._kernel_for(fitted.X_fit_), fitted.X_fit_)
    _copy_attributes(fitted, model)
    return model


def to_sklearn(model: KernelPCA) -> ScikitKernelPCA:
    """Return a scikit-learn model with the components of an ikpca model."""
    if model._on_landmarks:
        raise InvalidInput(
            "The model keeps only landmarks: scikit-learn's KernelPCA needs all training rows; "
            "call refine(X) first, or fit with eigen_solver='krylov'."
        )
    if model.whiten:
        raise invalid_parameter(
            "whiten", True, "scikit-learn's KernelPCA does not whiten", "fit with whiten=False"
        )
    if not callable(model.kernel) and model.kernel not in _SCIKIT_KERNELS:
        raise invalid_parameter(
            "kernel",
            model.kernel,
            "is not supported by scikit-learn's KernelPCA",
            f"choose one of {', '.join(_SCIKIT_KERNELS)}, or a callable",
        )
    parameters = {name: getattr(model, name) for name in _SHARED_PARAMETERS}
    if isinstance(model.gamma, str):
        parameters["gamma"] = model.gamma_
    # preimage="ridge" has no counterpart in scikit-learn.
    parameters["fit_inverse_transform"] = model._learns_ridge
    converted = ScikitKernelPCA(**parameters)
    _copy_attributes(model, converted)
    if hasattr(model, "dual_coef_"):
        converted.X_transformed_fit_ = model.X_transformed_fit_
    converted.eigenvalues_ = model.eigenvalues_
    converted.eigenvectors_ = model.eigenvectors_
    converted._centerer = _centerer(model._subspace)
    return converted


def _copy_attributes(source: Any, target: Any) -> None:
    for name in _SHARED_ATTRIBUTES:
        if hasattr(source, name):
            setattr(target, name, getattr(source, name))


def _solution(fitted: Any) -> EigenSolution:
    eigenvalues, eigenvectors = fitted.eigenvalues_, fitted.eigenvectors_
    roots = np.sqrt(eigenvalues)[:, None]
    vectors = eigenvectors.T
    centerer = fitted._centerer
    centering = Centering(centerer.K_fit_rows_, float(centerer.K_fit_all_))
    return EigenSolution(
        coefficients=np.divide(vectors, roots, out=np.zeros_like(vectors), where=roots > 0),
        projections=getattr(fitted, "X_transformed_fit_", eigenvectors * roots.T).T,
        eigenvalues=eigenvalues,
        eigenvectors=eigenvectors,
        centering=centering,
        # scikit-learn does not store the trace of K'.
        trace=float("nan"),
        certificate=None,
        outcome=Outcome.EXACT,
    )


def _centerer(subspace: Subspace) -> KernelCenterer:
    centerer = KernelCenterer().set_output(transform="default")
    # ⟨µ, Φ(x_j)⟩ and ‖µ‖²; scikit-learn's kernels have no origin.
    products, squared = subspace.products[-1], float(subspace.gram[-1, -1])
    if isinstance(subspace.kernel, Linear | Cosine) and subspace.kernel.origin is not None:
        origin = subspace.kernel.origin
        along = subspace.kernel.features(subspace.basis) @ origin
        mean, length = float(subspace.mean @ along), float(origin @ origin)
        products, squared = products + along + (mean - length), squared + 2 * mean - length
    centerer.K_fit_rows_, centerer.K_fit_all_ = products, squared
    centerer.n_features_in_ = len(subspace.mean)
    return centerer


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
    if sparse.issparse(model.X_fit_) or not isinstance(model.X_fit_, np.ndarray):
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
        A = model.coefficients_[nonzero].astype(np.float64)
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
