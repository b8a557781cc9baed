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
from ikpca.estimators.validation import is_named, is_precomputed, n_threads
from ikpca.gram import SERIAL, Workers
from ikpca.kernels import Floats, Kernel
from ikpca.model_files import Encoder, Manifest, digests_of, write_container
from ikpca.preimages import Preimages, make_preimage_method, masked_error, predict_rows
from ikpca.solvers import Outcome
from ikpca.subspace import Expansion, Projector, Subspace


def expansion_of(projector: Projector, kernel: Kernel) -> Expansion:
    """Uncentred components w_r = Σ_k (a_rk − mean a_r) Φ(x_k), and the mean of the images last."""
    A, means = projector.coefficients, projector.centring.column_means
    zero_sum = A - A.mean(axis=1, keepdims=True)
    with_mean = zero_sum @ means
    uniform = np.full((1, A.shape[1]), 1 / A.shape[1], dtype=A.dtype)
    gram = np.block(
        [
            [projector.component_gram, with_mean[:, None]],
            [with_mean[None, :], np.array([[projector.centring.grand_mean]])],
        ]
    )
    products = None
    if projector.training_projections is not None:
        # ⟨w, Φ(x)⟩ = ⟨w, Φ'(x)⟩ + ⟨w, mean⟩.
        uncentred = projector.training_projections + with_mean[:, None]
        products = np.vstack([uncentred, means[None, :]])
    return Expansion(
        kernel,
        # A plain view of a memory map: what is taken from it should not claim to lie on disk.
        np.asarray(projector.X_fit),
        np.vstack([zero_sum, uniform]),
        products,
        gram.astype(A.dtype),
    )


_OUTCOME = "outcome_"


class SaveMixin:
    """Adds ``save`` to an estimator; :func:`ikpca.load` reads what it writes."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file: arrays in safetensors, the rest as JSON.

        The file appears whole or not at all, holds checksums of everything, and executes nothing
        when it is loaded, unlike a pickle.

        Parameters
        ----------
        path : str or path
            Overwritten where it exists.

        See Also
        --------
        ikpca.load : Reads it.
        """
        check_is_fitted(self)
        save_model(self, path)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle, joblib and skops, the last of which has no way with members of an Enum."""
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
    """An estimator with a counterpart in scikit-learn."""

    @classmethod
    def from_sklearn(cls, fitted: Any) -> Self:
        """Take over a fitted :class:`sklearn.decomposition.KernelPCA`.

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


def check_preimage(model: Any, kernel: Kernel | None) -> None:
    """Refuse, before the fit, a method that the kernel does not have."""
    if is_named(model.preimage, "auto", "ridge"):
        return
    if kernel is None:
        raise InvalidInput(
            f"preimage={model.preimage!r}: a precomputed kernel has no pre-images, the rows are "
            "not known; pass rows and a kernel, or preimage='auto'."
        )
    make_preimage_method(model.preimage, kernel)


def _has_rows(model: Any) -> bool:
    """Whether a score in input space is to be had; scikit-learn scores whatever has a score."""
    return not is_precomputed(model)


class InverseMixin:
    """Pre-images and what follows from them, for a model of a mean and components.

    The model tells its ``_subspace`` and the mean of the rows it has seen, ``_mean_row``; the
    other hooks follow from the subspace, unless the model knows better.
    """

    _mean_row: Any
    _scale: Any
    _subspace: Any
    _validated_rows: Any
    eigenvalues_: Any
    transform: Any

    @property
    def _basis(self) -> Any:
        """The rows that components are combinations of."""
        return self._subspace.library

    def _residuals(self, X: Any) -> Floats:
        return self._subspace.residuals(X)

    def _share(self, X: Any) -> float:
        return self._subspace.explained_share(X)

    def inverse_transform(self, X: Any, return_distance: bool = False) -> Any:
        """Rows in input space for projections, by the method that ``preimage`` names.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_components)
            What ``transform`` returned.
        return_distance : bool, default=False
            Also return how far the image of each row is from the point it stands for.

        Returns
        -------
        rows : ndarray of shape (n_rows, n_features)
        distances : ndarray of shape (n_rows,)
            ‖PΦ(x) − Φ(z)‖ in feature space, with ``return_distance=True``.
        """
        check_is_fitted(self)
        _check_invertible(self)
        X = check_array(X, dtype=[np.float64, np.float32], ensure_min_features=0)
        n_components = len(self.eigenvalues_)
        if X.shape[1] != n_components:
            raise InvalidInput(
                f"X has {X.shape[1]} columns: the model has {n_components} components; "
                "pass what transform returned."
            )
        rows, squared_distances = _invert(self, X)
        return (rows, np.sqrt(squared_distances)) if return_distance else rows

    def reconstruct(self, X: Any) -> Floats:
        """Rows as the components see them: ``inverse_transform(transform(X))``.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows that need not have been seen in training, such as noisy ones.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
        """
        check_is_fitted(self)
        _check_invertible(self)
        return self.inverse_transform(self.transform(X))

    def reconstruction_error(self, X: Any) -> Floats:
        """What the components leave of each row in feature space: a score of novelty.

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
        return self._residuals(self._validated_rows(X))

    def explained_share(self, X: Any) -> float:
        """Share of the variance of rows that the components explain, about the training mean.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)
            Rows that need not have been seen in training.

        Returns
        -------
        float
            1 − Σ‖Φ'(x) − WᵀWΦ'(x)‖² / Σ‖Φ'(x)‖²; at most 1.
        """
        check_is_fitted(self)
        if is_precomputed(self):
            raise InvalidInput(
                "kernel='precomputed': explained_share needs k(x, x) of new rows, which a kernel "
                "matrix does not hold; fit on rows instead."
            )
        return self._share(self._validated_rows(X))

    @available_if(_has_rows)
    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean squared error of the reconstruction in input space.

        Where the clean rows are known they are the truth: −mean ‖reconstruct(X) − y‖². Otherwise
        features of X are reconstructed from the other features: an eighth of them at a time is
        hidden, so that no error can be avoided by copying noise. Both can be compared between
        kernels and numbers of components, and a search such as ``GridSearchCV`` finds the best of
        them inside its range; the explained share, and the error of ``reconstruct(X)`` against X
        itself, prefer the widest kernel.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows that were left out of the training; they may be noisy.
        y : array-like of shape (n_rows, n_features), optional
            The same rows without noise. Anything of another shape, such as labels that a search
            passes on, is ignored.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        _check_invertible(self)
        X = self._validated_rows(X)
        rows = X.toarray() if sparse.issparse(X) else X
        if y is not None and np.shape(y) == rows.shape:
            truth = check_array(y, dtype=[np.float64, np.float32])
            return -float(np.mean(np.square(self.reconstruct(rows) - truth, dtype=np.float64)))
        return -masked_error(self.reconstruct, rows, self._mean_row)


def _check_invertible(model: Any) -> None:
    if is_precomputed(model):
        raise InvalidInput(
            "kernel='precomputed': there are no pre-images, as the rows are not known; pass rows "
            "and a kernel."
        )
    if _takes_ridge(model) and not hasattr(model, "dual_coef_"):
        raise NotFittedError("The ridge regression was not learned in the fit: fit again.")
    if sparse.issparse(model._basis):
        raise NotFittedError(
            "The model was fitted on sparse rows, which have no pre-images here: fit it on "
            "X.toarray()."
        )
    if not isinstance(model._basis, np.ndarray):
        raise NotFittedError(
            "The model was fitted on rows that are read in tiles, and pre-images need them in "
            "memory: fit it on X[:]."
        )


def _takes_ridge(model: Any) -> bool:
    """Whether projections go back by the ridge regression that the fit learned."""
    if is_named(model.preimage, "ridge"):
        return True
    return is_named(model.preimage, "auto") and bool(getattr(model, "fit_inverse_transform", False))


def _invert(model: Any, X: Floats) -> tuple[Floats, Floats]:
    """Rows for projections, and ‖PΦ(x) − Φ(z)‖²."""
    subspace: Subspace = model._subspace
    expansion, kernel = subspace.expansion, subspace.expansion.kernel
    scale = np.divide(1, model._scale, out=np.zeros_like(model._scale), where=model._scale > 0)
    coordinates = subspace.points((X * scale).astype(subspace.components.dtype))
    if _takes_ridge(model):
        rows = predict_rows(kernel, X, model.X_transformed_fit_, model.dual_coef_)
        return rows, expansion.squared_distances(coordinates, rows)
    method = make_preimage_method(model.preimage, kernel)
    strips = list(expansion.strips(len(coordinates)))
    with _workers(model.n_jobs, len(strips)) as workers:
        found = workers.map(lambda strip: method.find(expansion, coordinates[strip]), strips)
        joined = Preimages.joined(list(found))
    return joined.rows, joined.squared_distances


def _workers(n_jobs: int | None, n_strips: int) -> AbstractContextManager[Workers]:
    """Threads for strips; a single strip leaves BLAS its own."""
    return Workers(n_threads(n_jobs)) if n_strips > 1 else nullcontext(SERIAL)
