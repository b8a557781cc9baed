"""Base classes of the estimators: transforms and scores of a subspace, saving, warnings."""

from __future__ import annotations

import os
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, Literal, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from ikpca.errors import InvalidInput, Number, RankWarning, check_parameters, invalid_parameter
from ikpca.estimators.validation import (
    FLOAT_DTYPES,
    GammaLike,
    KernelLike,
    PreimageLike,
    RandomStateLike,
    RowsLike,
    check_gamma,
    finite_values,
    is_kernel_object,
    is_named,
    make_kernel,
    n_threads,
    validate_rows,
)
from ikpca.gram.resources import SERIAL, Workers
from ikpca.kernels import Floats, Kernel, Rows
from ikpca.model_files import write_file
from ikpca.preimages import (
    PREIMAGE_NAMES,
    PreimageMethod,
    make_preimage_method,
    masked_error,
)
from ikpca.solvers import Outcome
from ikpca.subspace import Subspace, check_shapes

_RUNTIME_RULES = {
    "n_jobs": Number("must be an integer or None", "pass None", integer=True, allowed=(None,)),
    "verbose": Number("must be 0, 1 or more", "pass 0 or 1", low=0, integer=True, allowed=(bool,)),
}
_KERNEL_RULES = {
    "degree": Number("must not be negative", "pass 2 or 3", low=0),
    "coef0": Number("must be a finite number", "pass 1"),
}
Method = TypeVar("Method", bound=Callable[..., Any])


class FitInterrupted(KeyboardInterrupt):
    """Interrupt of a fit that has set all attributes from its finished passes or batches."""


def atomic(method: Method) -> Method:
    """Change an object in one assignment, after the method.

    The method runs on a shallow copy, whose attributes replace those of the object when it returns.
    After an error or an interrupt the object is unchanged; after ``FitInterrupted``, which is
    raised as a KeyboardInterrupt, it has the attributes of the finished passes. Objects in
    attributes must be replaced, not modified.
    """

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        try:
            result = method(copy, *args, **kwargs)
        except FitInterrupted:
            self.__dict__ = copy.__dict__
            raise KeyboardInterrupt from None
        self.__dict__ = copy.__dict__
        return self if result is copy else result

    return cast(Method, run)


class SavedEstimator(BaseEstimator):
    """Estimator with runtime parameters, which saves itself for :func:`ikpca.load`."""

    n_jobs: int | None
    verbose: int
    n_features_in_: int
    outcome_: Outcome

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
        write_file(path, "model", self)

    def _check_loaded(self, make_row: Callable[[int], Rows | None]) -> None:
        """Raise an error if the parts of a fitted model from a file do not fit together.

        ``make_row`` returns a row with a number of features, or None if it would be too large.
        """
        if hasattr(self, "feature_names_in_"):
            check_shapes((self.feature_names_in_, (self.n_features_in_,)))

    def __getstate__(self) -> dict[str, object]:
        """Return the state for pickle, joblib and skops; skops does not support enumerations."""
        state: dict[str, object] = super().__getstate__()
        outcome = state.get("outcome_")
        return state | {"outcome_": outcome.name} if isinstance(outcome, Outcome) else state

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        if "outcome_" in state:
            self.outcome_ = Outcome[str(state["outcome_"])]

    def _check_runtime_parameters(self) -> None:
        check_parameters(self, _RUNTIME_RULES)
        if self.n_jobs == 0:
            raise invalid_parameter(
                "n_jobs", 0, "must not be zero", "pass None, a number of threads, or -1"
            )


class KernelTransformer(
    SavedEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC
):
    """Base class of kernel PCA: a mean and components in feature space.

    A fit sets ``_subspace`` (components and mean), ``_scale`` (factors of the projections) and
    ``eigenvalues_``.
    """

    kernel: KernelLike
    gamma: GammaLike
    degree: float
    coef0: float
    kernel_params: dict[str, object] | None
    preimage: PreimageLike
    whiten: bool
    random_state: RandomStateLike

    eigenvalues_: Floats
    explained_variance_ratio_: Floats
    gamma_: float
    _subspace: Subspace
    _scale: Floats

    def transform(self, X: RowsLike) -> Floats:
        """Project rows on the components, one strip of rows at a time.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)
            With ``kernel="precomputed"``: kernel values with the training rows.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        rows = self._validated_rows(X)
        return finite_values(lambda: self._project(rows)).astype(rows.dtype, copy=False)

    def _project(self, X: Rows) -> Floats:
        """Return the projections of valid rows; several strips share the threads."""
        if not self._subspace.has_strips(X):
            return self._subspace.project(X) * self._scale
        with Workers(n_threads(self.n_jobs)) as workers:
            return self._subspace.project(X, workers) * self._scale

    @overload
    def inverse_transform(
        self, X: ArrayLike, return_distance: Literal[False] = False
    ) -> Floats: ...

    @overload
    def inverse_transform(
        self, X: ArrayLike, return_distance: bool
    ) -> Floats | tuple[Floats, Floats]: ...

    def inverse_transform(
        self, X: ArrayLike, return_distance: bool = False
    ) -> Floats | tuple[Floats, Floats]:
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
        self._check_invertible()
        rows, squared_distances = self._invert(check_projections(X, len(self.eigenvalues_)))
        if not return_distance:
            return rows
        return rows, finite_values(lambda: np.sqrt(squared_distances))

    def reconstruct(self, X: RowsLike) -> Floats:
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
        self._check_invertible()
        return self.inverse_transform(self.transform(X))

    def reconstruction_error(self, X: RowsLike) -> Floats:
        """Compute the squared reconstruction error in feature space, a novelty score.

        Parameters
        ----------
        X : array-like or CSR of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            ‖Φ'(x) − PΦ'(x)‖², with Φ' centered on the training mean and P the orthogonal projector
            on the components; not negative.
        """
        rows = self._rows_with_diagonal(X, "reconstruction_error")
        return finite_values(lambda: self._subspace.residuals(rows))

    def explained_variance_score(self, X: RowsLike) -> float:
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
        rows = self._rows_with_diagonal(X, "explained_variance_score")
        parts = finite_values(lambda: np.stack(self._subspace.squared_norms_and_residuals(rows), 1))
        total, residual = parts.sum(axis=0, dtype=np.float64)
        return float(1 - residual / total) if total > 0 else 0.0

    def _rows_with_diagonal(self, X: RowsLike, method: str) -> Rows:
        """Return valid rows; raise an error for kernel values, which lack k(x, x) of new rows."""
        check_is_fitted(self)
        if self._is_precomputed:
            raise InvalidInput(
                f"kernel='precomputed': {method} needs k(x, x) of new rows, which a kernel matrix "
                "does not hold; fit on rows instead."
            )
        return self._validated_rows(X)

    @available_if(lambda self: not self._is_precomputed)
    def score(self, X: RowsLike, y: ArrayLike | None = None) -> float:
        """Compute the negative mean squared reconstruction error in input space.

        With clean rows ``y``, this is −mean ‖reconstruct(X) − y‖². Without them, features of X are
        reconstructed from the other features, an eighth of them masked at a time, so that copying
        noise does not reduce the error. Both scores can be compared between kernels and numbers of
        components, for example in ``GridSearchCV``. The explained variance, and the error of
        ``reconstruct(X)`` against X itself, always favor the widest kernel.

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
        self._check_invertible()
        valid = self._validated_rows(X)
        rows = valid.toarray() if sparse.issparse(valid) else np.asarray(valid)
        with np.errstate(over="ignore", invalid="ignore"):
            if y is not None and np.shape(y) == rows.shape:
                truth = check_array(y, dtype=FLOAT_DTYPES)
                squares = np.square(self.reconstruct(rows) - truth, dtype=np.float64)
                error = float(np.mean(squares))
            else:
                error = masked_error(self.reconstruct, rows, self._mean_row)
        if not np.isfinite(error):
            raise InvalidInput(
                f"X has values as large as {np.abs(rows).max():.3g}, whose squared errors "
                "overflow; scale X."
            )
        return -error

    @property
    @abstractmethod
    def _mean_row(self) -> Floats:
        """Mean of the training rows in input space."""

    @property
    def _is_precomputed(self) -> bool:
        """True if X holds kernel values."""
        return is_named(self.kernel, "precomputed")

    def _check_loaded(self, make_row: Callable[[int], Rows | None]) -> None:
        super()._check_loaded(make_row)
        number, n_features = len(self.eigenvalues_), self.n_features_in_
        self._subspace.check_shapes(number, n_features)
        n_rows = len(self._subspace.mean)
        check_shapes(
            (self._subspace.basis, (n_rows, n_features)),
            (self.eigenvalues_, (number,)),
            (self._scale, (number,)),
        )
        row = make_row(n_features)
        if row is not None:
            self.transform(row)

    def _validated_rows(self, X: RowsLike) -> Rows:
        check_is_fitted(self)
        return validate_rows(self, X)

    def _check_invertible(self) -> None:
        if self._is_precomputed:
            raise InvalidInput(
                "kernel='precomputed': pre-images need the training rows, which a kernel matrix "
                "does not hold; pass rows and a kernel."
            )
        basis = self._subspace.basis
        if not isinstance(basis, np.ndarray):
            kind, remedy = "rows that are read in tiles", "X[:]"
            if sparse.issparse(basis):
                kind, remedy = "sparse rows", "X.toarray()"
            raise NotFittedError(
                f"The model was fitted on {kind}: pre-images need dense rows in memory; fit it on "
                f"{remedy}."
            )

    def _points(self, X: Floats) -> Floats:
        """Return the coordinates of the points of projections."""
        scale = np.divide(1, self._scale, out=np.zeros_like(self._scale), where=self._scale > 0)
        dtype = self._subspace.coefficients.dtype
        with np.errstate(over="ignore"):
            projections = (X * scale).astype(dtype)
        if not np.isfinite(projections).all():
            raise InvalidInput(
                f"X has values as large as {np.abs(X).max():.3g}, which overflow {dtype}; pass "
                "projections returned by transform."
            )
        return self._subspace.points(projections)

    def _invert(self, X: Floats) -> tuple[Floats, Floats]:
        """Return the pre-images z of projections, and ‖PΦ(x) − Φ(z)‖²."""
        subspace, points = self._subspace, self._points(X)
        method = make_preimage_method(self.preimage, subspace.kernel)
        strips = list(subspace.strips(len(points)))
        # A single strip uses the threads of BLAS.
        threads: AbstractContextManager[Workers] = nullcontext(SERIAL)
        if len(strips) > 1:
            threads = Workers(n_threads(self.n_jobs))
        with threads as workers:
            parts = workers.map(lambda strip: method.find(subspace, points[strip]), strips)
            rows, squared_distances = map(np.concatenate, zip(*parts, strict=True))
        return rows, squared_distances

    def _check_kernel_parameters(self) -> None:
        check_parameters(self, _KERNEL_RULES)
        for name, default in (("gamma", None), ("degree", 3), ("coef0", 1)):
            value = getattr(self, name)
            if is_kernel_object(self.kernel) and value is not None and value != default:
                raise invalid_parameter(
                    name,
                    value,
                    f"has no effect beside kernel={self.kernel!r}, which has its own parameters",
                    f"leave it out, and set {name} in the kernel",
                )
        check_gamma(self.gamma, self.kernel)
        params = self.kernel_params
        if params is not None and not isinstance(params, dict):
            raise invalid_parameter(
                "kernel_params", params, "must be a dict or None", "pass keyword arguments"
            )

    def _make_kernel(self, gamma: float) -> Kernel:
        """Return the kernel object of the parameters."""
        return make_kernel(
            self.kernel,
            gamma=gamma,
            degree=self.degree,
            coef0=self.coef0,
            params=self.kernel_params,
        )

    def _check_preimage(self, *excluded: str) -> None:
        names = [name for name in PREIMAGE_NAMES if name not in excluded]
        is_method = isinstance(self.preimage, PreimageMethod) and not isinstance(
            self.preimage, type
        )
        if not is_method and not is_named(self.preimage, *names):
            raise invalid_parameter(
                "preimage",
                self.preimage,
                "is not a pre-image method",
                f"choose one of {', '.join(map(repr, names))}",
            )

    def _check_preimage_of(self, kernel: Kernel | None) -> None:
        """Raise an error, before the fit, if the kernel does not support the pre-image method."""
        if is_named(self.preimage, "auto", "ridge"):
            return
        if kernel is None:
            raise InvalidInput(
                f"preimage={self.preimage!r}: pre-images need the training rows, which a "
                "precomputed kernel matrix does not hold; pass rows and a kernel, or "
                "preimage='auto'."
            )
        make_preimage_method(self.preimage, kernel)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)


def check_projections(X: ArrayLike, n_components: int) -> Floats:
    """Return projections as floats; raise an error for another number of components."""
    projections: Floats = check_array(X, dtype=FLOAT_DTYPES, ensure_min_features=0)
    if projections.shape[1] != n_components:
        raise InvalidInput(
            f"X has {projections.shape[1]} columns: the model has {n_components} components; "
            "pass projections returned by transform."
        )
    return projections


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the line of the first caller outside of ikpca and scikit-learn."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals["__name__"].split(".")[0] in ("ikpca", "sklearn"):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def warn_of_rank(
    n_components: float | None,
    number: int,
    rank: int,
    remedy: str = "reduce it, or set remove_zero_eig=True",
) -> None:
    """Warn about components that are zero."""
    if rank == 0:
        text = (
            "the kernel has no variance on these rows beyond rounding errors: all components are "
            "zero; check that rows differ, subtract their mean, and check that gamma fits their "
            "scale."
        )
    elif rank < number:
        text = (
            f"n_components={n_components!r} exceeds the numerical rank {rank} of the centered "
            f"kernel matrix: the other components are zero; {remedy}."
        )
    else:
        return
    warn(text, RankWarning)
