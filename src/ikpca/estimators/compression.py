"""Reduction of fitted models to fewer rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ikpca.errors import InvalidInput
from ikpca.estimators.incremental_kernel_pca import IncrementalKernelPCA
from ikpca.estimators.incremental_stream import IncrementalStream
from ikpca.estimators.kernel_pca import KernelPCA
from ikpca.estimators.validation import check_number, is_auto, is_precomputed
from ikpca.kernels import Floats
from ikpca.reduced_sets import (
    ReducedSubspace,
    Reduction,
    SelectedRows,
    make_reduction,
    reduce_subspace,
    reduce_within,
)
from ikpca.streams import BasisGram, IncrementalSettings, IncrementalState, UpdateReport
from ikpca.subspace import Subspace

_SHARED = ("kernel", "degree", "coef0", "kernel_params", "preimage", "whiten", "n_jobs", "verbose")


def compress(
    model: Any,
    library_size: Any = "auto",
    *,
    compression: Any = "auto",
    preimages_per_component: Any = "auto",
    tol: float = 0.05,
    random_state: Any = None,
) -> IncrementalKernelPCA:
    """Put a fitted model on fewer rows: it transforms faster, and can go on with ``partial_fit``.

    Components and mean become combinations of the images of a small library of rows, as near to
    the originals as these allow (Chin & Suter 2006, section 5); components are then made
    orthonormal again. How near is told: with ε_i the ``compression_error_`` of a component and ε
    the ``mean_compression_error_``, a projection changes by no more than ε_i ‖Φ(x) − µ‖ + ε ‖µ‖.

    Parameters
    ----------
    model : KernelPCA, IncrementalKernelPCA, OnlineKernelPCA or sklearn.decomposition.KernelPCA
        Fitted on dense rows with a kernel. It is left as it is.
    library_size : int or "auto", default="auto"
        Rows of the library, at most; also later, in ``partial_fit``. "auto" doubles it from ten per
        component until no error is above ``tol``, or half of the rows are used.
    compression : {"auto", "preimages", "samples"} or reduction object, default="auto"
        "samples" are rows that the model has; "preimages" are these, moved to where the errors are
        smallest, for kernels with a gradient. "auto" takes pre-images where the kernel has them.
        An object from :mod:`ikpca.reduced_sets` has settings of its own.
    preimages_per_component : int or "auto", default="auto"
        With a number, pre-images are sought one after the other, as in the paper.
    tol : float, default=0.05
        Relative error in feature space that is small enough, with ``library_size="auto"``. A
        library of given size is made as good as it gets.
    random_state : int, RandomState or None, default=None
        Of the draw of rows to choose from, where there are more than 4,000.

    Returns
    -------
    IncrementalKernelPCA
        Fitted. Its ``eigenvalues_`` are those of the same samples, as far as the library sees them.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from ikpca import KernelPCA, compress
    >>> X = load_digits().data / 16
    >>> model = KernelPCA(4, kernel="rbf", gamma=0.02).fit(X)
    >>> small = compress(model, 50)
    >>> small.library_.shape, bool(small.compression_error_.max() < 0.05)
    ((50, 64), True)
    """
    check_number("tol", tol, "must lie in [0, 1)", "pass 0.05", low=0, high=1)
    if not is_auto(library_size):
        check_number("library_size", library_size, "must be 'auto' or a positive integer",
                     "pass 'auto'", low=1, integer=True)  # fmt: skip
    source = _Source.of(model)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    reduction = make_reduction(
        compression,
        source.subspace.expansion.kernel,
        per_vector=preimages_per_component,
        tol=float(tol) if is_auto(library_size) else 0.0,
        seed=seed,
    )
    small = source.compacted(reduction, library_size, float(tol))
    twin = source.stream_model(reduction, small, random_state)
    twin._take(source.stream(twin, small, seed))
    return twin


@dataclass(frozen=True, eq=False)
class _Source:
    """What a fitted model knows, whatever its kind."""

    model: Any
    subspace: Subspace
    singular_values: Floats
    n_samples: float
    total_variance: float

    @classmethod
    def of(cls, model: Any) -> _Source:
        """Or an error that says what a model lacks."""
        if isinstance(model, ScikitKernelPCA) and not isinstance(model, KernelPCA):
            model = KernelPCA.from_sklearn(model)
        if not hasattr(type(model), "_subspace"):
            raise InvalidInput(
                f"{type(model).__name__} cannot be compressed: pass a fitted KernelPCA, "
                "IncrementalKernelPCA or OnlineKernelPCA, or a KernelPCA of scikit-learn."
            )
        check_is_fitted(model)
        _check_rows(model)
        if not (model.eigenvalues_ > 0).any():
            raise InvalidInput(
                "The model has no component with variance, and so nothing to compress: fit it on "
                "rows that differ."
            )
        if isinstance(model, IncrementalKernelPCA):
            return cls._of_state(model)
        there = np.flatnonzero(model.eigenvalues_ > 0)
        subspace = model._subspace
        n_samples = getattr(model, "n_samples_seen_", None) or len(model._basis)
        return cls(
            model,
            subspace.part(there),
            np.sqrt(model.eigenvalues_[there].astype(np.float64)),
            float(n_samples),
            _total_variance(model, subspace),
        )

    @classmethod
    def _of_state(cls, model: IncrementalKernelPCA) -> _Source:
        state = model._stream.state.truncate(len(model.eigenvalues_))
        return cls(
            model, state.subspace(), state.singular_values, state.n_samples, state.total_variance
        )

    def compacted(self, reduction: Reduction, library_size: Any, tol: float) -> ReducedSubspace:
        """On so many rows, or on as many as the error takes."""
        weight = float(np.sqrt(self.n_samples))
        if is_auto(library_size):
            return reduce_within(self.subspace, self.singular_values, weight, reduction, tol)
        size = int(library_size)
        return reduce_subspace(self.subspace, self.singular_values, weight, reduction, size)

    def stream_model(
        self, reduction: Reduction, small: ReducedSubspace, random_state: Any
    ) -> IncrementalKernelPCA:
        """A stream with the parameters of the model, not yet fitted."""
        shared = {name: getattr(self.model, name) for name in _SHARED}
        if isinstance(shared["preimage"], str) and shared["preimage"] == "ridge":
            shared["preimage"] = "auto"
        samples = isinstance(reduction, SelectedRows)
        return IncrementalKernelPCA(
            len(self.model.eigenvalues_),
            gamma=self.model.gamma_,
            compression="samples" if samples else "preimages",
            library_size=small.subspace.library.shape[0],
            random_state=random_state,
            **shared,
        )

    def stream(
        self, twin: IncrementalKernelPCA, small: ReducedSubspace, seed: int
    ) -> IncrementalStream:
        """As if it had learned from the same samples."""
        model, after = self.model, small.subspace.expansion
        state = IncrementalState(
            after.kernel,
            after.basis,
            after.coefficients,
            after.products,
            small.singular_values,
            self.n_samples,
            self.total_variance,
            BasisGram((small.values,)),
        )
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(twin, name, getattr(model, name))
        seen = getattr(model, "n_samples_seen_", None) or len(model._basis)
        report = UpdateReport(np.zeros(0), small.relative_errors)
        mean_row = np.asarray(model._mean_row, dtype=np.float64)
        begun = IncrementalStream(
            state,
            IncrementalSettings(),
            float(model.gamma_),
            seed,
            1,
            int(seen),
            1,
            mean_row,
            report,
        )
        return begun.told(twin)


def _check_rows(model: Any) -> None:
    if is_precomputed(model):
        raise InvalidInput(
            "kernel='precomputed': a model cannot be compressed without its rows, which are not "
            "known; fit it on rows and with a kernel."
        )
    rows = model._basis
    if sparse.issparse(rows):
        raise InvalidInput(
            "The model was fitted on sparse rows, and a library is dense: fit it on X.toarray()."
        )
    if not isinstance(rows, np.ndarray):
        raise InvalidInput(
            "The model was fitted on rows that are read in tiles, and compression needs them in "
            "memory: fit it on X[:]."
        )


def _total_variance(model: Any, subspace: Subspace) -> float:
    """Σ‖Φ(x) − µ‖² from what share the components have of it; scikit-learn's does not know."""
    share = float(np.sum(model.explained_variance_ratio_))
    if np.isfinite(share) and share > 0:
        return float(np.sum(model.eigenvalues_, dtype=np.float64)) / share
    expansion = subspace.expansion
    lengths = float(np.sum(expansion.diagonal, dtype=np.float64))
    return lengths - len(expansion.basis) * float(expansion.gram[-1, -1])
