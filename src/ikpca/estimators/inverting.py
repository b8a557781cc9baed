"""Back to input space: what ``KernelPCA`` offers beside its projections."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array, check_is_fitted

from ikpca.errors import InvalidInput
from ikpca.estimators.expanding import coordinates_of, expansion_of
from ikpca.estimators.training import is_named, is_precomputed
from ikpca.kernels import Floats, Kernel, Rows
from ikpca.preimages import choose_method, predict_rows

__all__ = ["InverseMixin", "check_preimage"]


def check_preimage(model: Any, kernel: Kernel | None, X: Rows) -> None:
    """Refuse, before the fit, a method that kernel or rows cannot have."""
    if is_named(model.preimage, "auto", "ridge"):
        return
    if kernel is None:
        raise InvalidInput(
            f"preimage={model.preimage!r}: a precomputed kernel has no pre-images, the rows are "
            "not known; pass rows and a kernel, or preimage='auto'."
        )
    if not isinstance(X, np.ndarray):
        raise InvalidInput(
            f"preimage={model.preimage!r}: pre-images need dense training rows in memory, and X is "
            f"a {type(X).__name__}; pass X.toarray() or X[:], or preimage='auto'."
        )
    choose_method(model.preimage, kernel)


class InverseMixin:
    """Pre-images and what follows from them, for a model with a ``Projector``."""

    _projector: Any
    _validated_rows: Any
    eigenvalues_: Any
    transform: Any

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
        X = check_array(X, dtype=[np.float64, np.float32])
        n_components = len(self.eigenvalues_)
        if X.shape[1] != n_components:
            raise InvalidInput(
                f"X has {X.shape[1]} columns: the model has {n_components} components; "
                "pass what transform returned."
            )
        rows, squared_distances = _inverted(self, X)
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
        return self._projector.residuals(self._validated_rows(X), self._projector.kernel)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean squared error of ``reconstruct`` in input space.

        Unlike the explained share of the variance it can be compared between kernels, and so it is
        what a search for gamma should look at.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows that were left out of the training.
        y : Ignored

        Returns
        -------
        float
        """
        rows = self.reconstruct(X)
        return -float(np.mean(np.square(self._validated_rows(X) - rows)))


def _check_invertible(model: Any) -> None:
    if is_precomputed(model):
        raise InvalidInput(
            "kernel='precomputed': there are no pre-images, as the rows are not known; pass rows "
            "and a kernel."
        )
    if sparse.issparse(model.X_fit_):
        raise NotFittedError(
            "The model was fitted on sparse rows, which have no pre-images here: fit it on "
            "X.toarray()."
        )
    if not isinstance(model.X_fit_, np.ndarray):
        raise NotFittedError(
            "The model was fitted on rows that are read in tiles, and pre-images need them in "
            "memory: fit it on X[:]."
        )


def _inverted(model: Any, X: Floats) -> tuple[Floats, Floats]:
    projector = model._projector
    dtype = projector.coefficients.dtype
    expansion = expansion_of(projector, projector.kernel)
    scale = np.divide(1, model._scale, out=np.zeros_like(model._scale), where=model._scale > 0)
    coordinates = coordinates_of(projector, (X * scale).astype(dtype))
    if is_named(model.preimage, "ridge") or (
        is_named(model.preimage, "auto") and model.fit_inverse_transform
    ):
        rows = predict_rows(projector.kernel, X, model.X_transformed_fit_, model.dual_coef_)
        return rows, expansion.squared_distances(coordinates, rows)
    found = choose_method(model.preimage, projector.kernel).find(expansion, coordinates)
    return found.rows, found.squared_distances
