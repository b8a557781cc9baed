"""What models of streams have in common once they have learned: a subspace to project on."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ikpca.estimators.inverting import InverseMixin
from ikpca.estimators.magnitudes import finite_projections
from ikpca.estimators.saving import SaveMixin
from ikpca.estimators.stream_keeping import StreamProgress, recalled
from ikpca.estimators.trail import Trail
from ikpca.kernels import Floats
from ikpca.reduced_sets import Subspace

__all__ = ["StreamedTransformer"]


class StreamedTransformer(
    InverseMixin, SaveMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Projections on components that a library of rows carries; how they are learned is elsewhere.

    A class has ``_view`` (the subspace), ``_scale``, ``mean_`` and ``eigenvalues_`` once it is
    fitted, and takes them from a stream.
    """

    checkpoint: Any
    resume: bool

    def transform(self, X: Any) -> Floats:
        """Project rows on the components, a strip of rows at a time.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        X = self._validated_rows(X)
        return finite_projections(lambda: self._subspace.project(X) * self._scale)

    def load_checkpoint(self) -> Self:
        """Take over the stream that ``partial_fit`` left in the checkpoint, to go on after it.

        For streams that cannot be played again. ``n_samples_seen_`` then says how many rows are
        learned already; those after them come next.

        Returns
        -------
        self
        """
        self._check_parameters()
        progress = recalled(self, needed=True)
        assert progress is not None
        self._take_progress(progress)
        self._trail = progress.trail
        return self

    def _take_checkpoint(self) -> None:
        """At the first batch with ``resume``: the batches of the checkpoint will come again."""
        if hasattr(self, "_stream") or not self.resume:
            return
        progress = recalled(self, needed=False)
        if progress is not None:
            self._take_progress(progress)
            self._trail, self._goal = Trail(), progress.trail

    def _knows(self, batch: Any) -> bool:
        """Whether a batch was learned before the checkpoint was written, and is passed over."""
        if not hasattr(self, "_goal"):
            return False
        trail = self._trail.after(batch)
        trail.check_leads_to(self._goal)
        self._trail = trail
        if trail == self._goal:
            del self._goal
        return True

    def _forget_batches(self) -> None:
        """Before a fit, which is no part of a stream."""
        for name in ("_trail", "_goal"):
            self.__dict__.pop(name, None)

    def _take_progress(self, progress: StreamProgress) -> None:
        for name, value in progress.names.items():
            setattr(self, name, value)
        self._take(progress.stream.dressed(self))

    def _take_unless_empty(self, stream: Any, interrupted: bool) -> None:
        """What was learned, also where an interrupt ended it; that goes on then."""
        if stream.seen:
            self._take(stream)
        if interrupted:
            raise KeyboardInterrupt

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _take(self, stream: Any) -> None:
        raise NotImplementedError

    @property
    def _subspace(self) -> Subspace:
        check_is_fitted(self)
        return self._view

    @property
    def _mean_row(self) -> Floats:
        return self.mean_

    def _validated_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=False)

    def _take_names(self, model: Any) -> None:
        """Width and names of the features of another model."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)
