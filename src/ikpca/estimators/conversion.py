"""Fitted models to and from scikit-learn's ``KernelPCA``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.preprocessing import KernelCenterer
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput, refuse
from ikpca.estimators.attributes import fitted_attributes
from ikpca.estimators.components import Components
from ikpca.estimators.fitting import take_attributes
from ikpca.estimators.training import chosen_kernel, learns_ridge
from ikpca.gram import Centring
from ikpca.loop import Outcome

__all__ = ["from_sklearn", "to_sklearn"]

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
    take_attributes(model, fitted_attributes(components, kernel, fitted.X_fit_, whiten=False))
    _copy_attributes(fitted, model)
    return model


def to_sklearn(model: Any) -> Any:
    """scikit-learn's model with our components; both have the same ``transform``."""
    if model.whiten:
        raise refuse("whiten", True, "scikit-learn's KernelPCA does not whiten",
                     "fit with whiten=False")  # fmt: skip
    if not callable(model.kernel) and model.kernel not in _SCIKIT_KERNELS:
        raise refuse("kernel", model.kernel, "scikit-learn's KernelPCA does not have it",
                     f"choose one of {', '.join(_SCIKIT_KERNELS)}, or a callable")  # fmt: skip
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
    centring = Centring(centerer.K_fit_rows_, float(centerer.K_fit_all_))
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


def _centerer(centring: Centring) -> KernelCenterer:
    centerer = KernelCenterer().set_output(transform="default")
    centerer.K_fit_rows_ = centring.column_means
    centerer.K_fit_all_ = centring.grand_mean
    centerer.n_features_in_ = len(centring.column_means)
    return centerer
