"""What models of streams have in common once they have learned: a subspace to project on."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ikpca.estimators.inverting import InverseMixin
from ikpca.estimators.magnitudes import finite_projections
from ikpca.estimators.saving import SaveMixin
from ikpca.kernels import Floats
from ikpca.reduced_sets import Subspace

__all__ = ["StreamedTransformer"]


class StreamedTransformer(
    InverseMixin, SaveMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Projections on components that a library of rows carries; how they are learned is elsewhere.

    A class has ``_view`` (the subspace), ``_scale``, ``mean_`` and ``eigenvalues_`` once it is
    fitted.
    """

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
