"""Base classes of the estimators: inverse transform, scores, saving, conversion."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from ikpca.errors import InvalidInput
from ikpca.estimators.validation import FLOAT_DTYPES, is_named, is_precomputed, n_threads
from ikpca.gram import SERIAL, Workers
from ikpca.kernels import Floats, Kernel
from ikpca.model_files import Encoder, Manifest, digests_of, write_container
from ikpca.preimages import Preimages, make_preimage_method, masked_error, predict_rows
from ikpca.solvers import Outcome
from ikpca.subspace import Subspace

_OUTCOME = "outcome_"


class SaveMixin:
    """Mixin that saves an estimator to a file for :func:`ikpca.load`."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file: arrays in safetensors, the rest as JSON.

        The file is written atomically and holds checksums of its content. Unlike unpickling,
        loading it never executes code.

        Parameters
        ----------
        path : str or path
            An existing file is overwritten.

        See Also
        --------
        ikpca.load : Load the model.
        """
        check_is_fitted(self)
        save_model(self, path)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickle, joblib and skops; skops does not support enumerations."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        if isinstance(state.get(_OUTCOME), Outcome):
            return {**state, _OUTCOME: state[_OUTCOME].name}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state.get(_OUTCOME), str):
            state = {**state, _OUTCOME: Outcome[state[_OUTCOME]]}
        super().__setstate__(state)  # type: ignore[misc]


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model with all its parameters and attributes."""
    encoder = Encoder()
    content = encoder.encode(model, type(model).__name__)
    manifest = Manifest("model", content, digests_of(encoder.arrays), version("ikpca"))
    write_container(path, manifest, encoder.arrays)


class ConversionMixin:
    """Mixin that converts an estimator from and to its counterpart in scikit-learn."""

    @classmethod
    def from_sklearn(cls, fitted: Any) -> Self:
        """Convert a fitted :class:`sklearn.decomposition.KernelPCA`.

        Parameters
        ----------
        fitted : sklearn.decomposition.KernelPCA

        Returns
        -------
        KernelPCA
            Fitted, with the same ``transform``.
        """
        from ikpca.estimators.conversion import from_sklearn

        return from_sklearn(cls, fitted)

    def to_sklearn(self) -> Any:
        """Return a fitted :class:`sklearn.decomposition.KernelPCA` with the same ``transform``.

        Returns
        -------
        sklearn.decomposition.KernelPCA
        """
        from ikpca.estimators.conversion import to_sklearn

        check_is_fitted(self)
        return to_sklearn(self)


def _has_rows(model: Any) -> bool:
    """Return True if a score in input space exists; scikit-learn calls any ``score`` it finds."""
    return not is_precomputed(model)


class InverseMixin:
    """Mixin with pre-images, reconstructions and scores of a model of a mean and components.

    The model provides ``_subspace`` and ``_mean_row``, the mean of the training rows.
    """

    _mean_row: Any
    _scale: Any
    _subspace: Any
    _validated_rows: Any
    eigenvalues_: Any
    transform: Any

    @property
    def _basis(self) -> Any:
        """Rows whose images the components are combinations of."""
        return self._subspace.basis

    def inverse_transform(self, X: Any, return_distance: bool = False) -> Any:
        """Transform projections back to input space by the method ``preimage``.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_components)
            Projections returned by ``transform``.
        return_distance : bool, default=False
            If True, also return the distance in feature space of each row's image to the
            projection.

        Returns
        -------
        rows : ndarray of shape (n_rows, n_features)
        distances : ndarray of shape (n_rows,)
            ‖PΦ(x) − Φ(z)‖ in feature space, with ``return_distance=True``.
        """
        check_is_fitted(self)
        _check_invertible(self)
        X = check_array(X, dtype=FLOAT_DTYPES, ensure_min_features=0)
        n_components = len(self.eigenvalues_)
        if X.shape[1] != n_components:
            raise InvalidInput(
                f"X has {X.shape[1]} columns: the model has {n_components} components; "
                "pass projections returned by transform."
            )
        rows, squared_distances = _invert(self, X)
        return (rows, np.sqrt(squared_distances)) if return_distance else rows

    def reconstruct(self, X: Any) -> Floats:
        """Reconstruct rows from their projections: ``inverse_transform(transform(X))``.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Training rows or new rows, for example noisy ones.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
        """
        check_is_fitted(self)
        _check_invertible(self)
        return self.inverse_transform(self.transform(X))

    def reconstruction_error(self, X: Any) -> Floats:
        """Compute the squared reconstruction error in feature space, a novelty score.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            ‖Φ'(x) − PΦ'(x)‖², with Φ' centred on the training mean and P the orthogonal projector
            on the components; not negative.
        """
        check_is_fitted(self)
        if is_precomputed(self):
            raise InvalidInput(
                "kernel='precomputed': reconstruction_error needs k(x, x) of new rows, which a "
                "kernel matrix does not hold; fit on rows instead."
            )
        return self._subspace.residuals(self._validated_rows(X))

    def explained_share(self, X: Any) -> float:
        """Compute the fraction of the variance about the training mean that is explained.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)
            Training rows or new rows.

        Returns
        -------
        float
            1 − Σ‖Φ'(x) − PΦ'(x)‖² / Σ‖Φ'(x)‖², with P as in ``reconstruction_error``; at most 1.
        """
        check_is_fitted(self)
        if is_precomputed(self):
            raise InvalidInput(
                "kernel='precomputed': explained_share needs k(x, x) of new rows, which a kernel "
                "matrix does not hold; fit on rows instead."
            )
        return self._subspace.explained_share(self._validated_rows(X))

    @available_if(_has_rows)
    def score(self, X: Any, y: Any = None) -> float:
        """Compute the negative mean squared reconstruction error in input space.

        With clean rows ``y``, this is −mean ‖reconstruct(X) − y‖². Without them, features of X are
        reconstructed from the other features, an eighth of them masked at a time, so that copying
        noise does not reduce the error. Both scores can be compared between kernels and numbers of
        components, for example in ``GridSearchCV``. The explained variance, and the error of
        ``reconstruct(X)`` against X itself, always favour the widest kernel.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows not used in training; they may be noisy.
        y : array-like of shape (n_rows, n_features), optional
            The same rows without noise. Arrays of another shape, such as labels, are ignored.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        _check_invertible(self)
        X = self._validated_rows(X)
        rows = X.toarray() if sparse.issparse(X) else X
        if y is not None and np.shape(y) == rows.shape:
            truth = check_array(y, dtype=FLOAT_DTYPES)
            return -float(np.mean(np.square(self.reconstruct(rows) - truth, dtype=np.float64)))
        return -masked_error(self.reconstruct, rows, self._mean_row)


def _check_invertible(model: Any) -> None:
    if is_precomputed(model):
        raise InvalidInput(
            "kernel='precomputed': pre-images need the training rows, which a kernel matrix does "
            "not hold; pass rows and a kernel."
        )
    if _uses_ridge(model) and not hasattr(model, "dual_coef_"):
        raise NotFittedError("The ridge regression was not fitted: fit the model again.")
    if sparse.issparse(model._basis):
        raise NotFittedError(
            "The model was fitted on sparse rows: pre-images need dense rows; fit it on "
            "X.toarray()."
        )
    if not isinstance(model._basis, np.ndarray):
        raise NotFittedError(
            "The model was fitted on rows that are read in tiles: pre-images need them in memory; "
            "fit it on X[:]."
        )


def _uses_ridge(model: Any) -> bool:
    """Return True if ``inverse_transform`` uses the ridge regression learned in the fit."""
    if is_named(model.preimage, "ridge"):
        return True
    return is_named(model.preimage, "auto") and bool(getattr(model, "fit_inverse_transform", False))


def _invert(model: Any, X: Floats) -> tuple[Floats, Floats]:
    """Return the pre-images z of projections, and ‖PΦ(x) − Φ(z)‖²."""
    subspace: Subspace = model._subspace
    kernel = subspace.kernel
    scale = np.divide(1, model._scale, out=np.zeros_like(model._scale), where=model._scale > 0)
    coordinates = subspace.points((X * scale).astype(subspace.components.dtype))
    if _uses_ridge(model):
        rows = predict_rows(kernel, X, model.X_transformed_fit_, model.dual_coef_)
        return rows, subspace.squared_distances(coordinates, rows)
    method = make_preimage_method(model.preimage, kernel)
    strips = list(subspace.strips(len(coordinates)))
    with _workers(model.n_jobs, len(strips)) as workers:
        found = workers.map(lambda strip: method.find(subspace, coordinates[strip]), strips)
        joined = Preimages.concatenate(list(found))
    return joined.rows, joined.squared_distances


def _workers(n_jobs: int | None, n_strips: int) -> AbstractContextManager[Workers]:
    """Return threads for several strips; a single strip uses the threads of BLAS."""
    return Workers(n_threads(n_jobs)) if n_strips > 1 else nullcontext(SERIAL)


def check_preimage(model: Any, kernel: Kernel | None) -> None:
    """Raise an error, before the fit, if the kernel does not support the pre-image method."""
    if is_named(model.preimage, "auto", "ridge"):
        return
    if kernel is None:
        raise InvalidInput(
            f"preimage={model.preimage!r}: pre-images need the training rows, which a precomputed "
            "kernel matrix does not hold; pass rows and a kernel, or preimage='auto'."
        )
    make_preimage_method(model.preimage, kernel)
