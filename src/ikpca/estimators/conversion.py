"""Conversion of fitted models: to and from scikit-learn, from batch to stream."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.preprocessing import KernelCenterer
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput, invalid_parameter
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.gram import Centering
from ikpca.kernels import Cosine, Linear
from ikpca.solvers import EigenSolution, Outcome
from ikpca.subspace import Subspace

Model = TypeVar("Model", bound=KernelPCA)

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
    rows = model._subspace.basis
    if not sparse.issparse(rows) and not isinstance(rows, np.ndarray):
        raise InvalidInput(
            "The model was fitted on rows on disk: a stream needs them in memory; fit it on X[:]."
        )


def shared_parameters(model: KernelPCA) -> dict[str, Any]:
    """Return the parameters that batch and streaming models share."""
    shared = {name: getattr(model, name) for name in _STREAM_PARAMETERS}
    # Fractions and names are replaced by the fitted values.
    shared["n_components"] = len(model.eigenvalues_)
    if isinstance(model.gamma, str):
        shared["gamma"] = model.gamma_
    if model.preimage == "ridge":
        shared["preimage"] = "auto"
    return shared
